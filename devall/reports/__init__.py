"""What runs, suites of tests and findings look like in the files that pipelines read."""
