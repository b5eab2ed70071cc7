"""A workflow as a picture: its scene, and how it is drawn as text, SVG and PNG."""
