"""A sweep file becomes tasks for the lab, and these rows."""
