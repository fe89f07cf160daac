"""Sphinx configuration of the HTML site."""

project = "Sentigeo"
html_title = "Sentigeo"
extensions = ["myst_nb"]
exclude_patterns = []

nb_execution_mode = "off"  # pages show the executed copies as they are
myst_enable_extensions = ["colon_fence", "attrs_block"]
myst_heading_anchors = 3

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["sentigeo.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
