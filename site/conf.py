"""Sphinx configuration of the HTML site."""

project = "Sentigeo"
html_title = "Sentigeo"
extensions = ["myst_nb"]
exclude_patterns = []

nb_execution_mode = "off"  # pages show the executed copies as they are
nb_code_prompt_show = "Show code"
nb_code_prompt_hide = "Hide code"
myst_heading_anchors = 3

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["sentigeo.css"]
html_copy_source = False
html_show_search_summary = False  # it would be fetched, which no page opened from a disk may
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#00588c",
        "color-brand-content": "#00659f",
        "color-brand-visited": "#6b4a8a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8cc8f0",
        "color-brand-content": "#7dbfec",
        "color-brand-visited": "#c3a6e0",
    },
}
