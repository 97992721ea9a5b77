"""One page that says what was promised, what was measured, and what is not covered; and the same as JSON."""

from fedkge.report.document import Document, json_schema
from fedkge.report.gather import gather
from fedkge.report.page import render

__all__ = ["Document", "gather", "json_schema", "render"]
