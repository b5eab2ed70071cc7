"""One run: what was chosen for it, from its beginning or from its journal, and its way to the end."""
