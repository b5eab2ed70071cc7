"""From events to logs, with secrets taken out."""
