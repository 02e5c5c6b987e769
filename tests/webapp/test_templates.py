"""Tests of all templates: headings of tables say what they head, and a deletion takes two steps."""

import re
from html.parser import HTMLParser
from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / "webapp" / "templates"
WITHOUT_LOSS = {"exports.html"}
"""Deletions of what can be made again at any time."""


class Markup(HTMLParser):
    """Headings without a scope, and deletions outside of a menu."""

    def __init__(self):
        super().__init__()
        self.headings, self.deletions, self._menus = [], [], 0

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "th" and "scope" not in values:
            self.headings.append(self.get_starttag_text())
        self._menus += tag == "details"
        deletes = re.search(r"url '(delete|remove)-(?!share)", values.get("action") or "")
        if not self._menus and ((tag == "form" and deletes) or values.get("value") == "delete"):
            self.deletions.append(self.get_starttag_text())

    def handle_endtag(self, tag):
        self._menus -= tag == "details"


def markup(text):
    parsed = Markup()
    parsed.feed(text)
    return parsed


def test_headings_have_a_scope_and_nothing_is_deleted_by_one_click():
    templates = {path.name: markup(path.read_text()) for path in TEMPLATES.rglob("*.html")}
    assert len(templates) > 80
    assert {name: seen.headings for name, seen in templates.items() if seen.headings} == {}
    at_once = {name: seen.deletions for name, seen in templates.items() if seen.deletions}
    assert at_once.keys() == WITHOUT_LOSS, at_once


def test_the_faults_of_a_template_are_seen():
    form = """<form method="post" action="{% url 'delete-dataset' 3 %}"><button>Delete</button>"""
    assert markup(form).deletions and not markup(f"<details>{form}</form></details>").deletions
    assert markup('<button name="do" value="delete">').deletions
    assert markup("<th>Name</th>").headings and not markup('<th scope="col">').headings
