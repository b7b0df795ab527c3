"""`python -m tools.reference`: writes the pages; `make reference` runs it."""

from tools.reference.pages import FOLDER, PAGES

for name, made in PAGES.items():
    (FOLDER / name).write_text(made(), encoding="utf-8")
