"""The answers of `index_status` and `reindex`."""

from __future__ import annotations

from pydantic import Field

from otterwiki_semantic.core.humanize import count
from otterwiki_semantic.mcp.answers.base import Part, ToolResponse, fit_entries
from otterwiki_semantic.mcp.backend import Json
from otterwiki_semantic.mcp.untrusted_text import Markers


class ProblemEntry(Part):
    """Something that limits the index."""

    message: str = Field(description="What is wrong")
    hint: str = Field(description="What to do about it")


class StatusAnswer(ToolResponse):
    """The state of the index."""

    status: str = Field(description="ready, indexing or error")
    indexed_commit: str | None = Field(default=None, description="The commit that the index equals")
    head_commit: str | None = Field(default=None, description="The wiki's latest commit")
    pending_pages: int = Field(description="Pages still to be indexed")
    pages: int = Field(description="Pages in the index")
    excluded_pages: int = Field(default=0, description="Pages that are excluded from search")
    attachments: int = Field(default=0, description="Attached files in the index")
    passages: int = Field(description="Passages in the index")
    model: str = Field(description="The embedding model")
    rebuild: str = Field(description="The last rebuild: idle, running, done or failed")
    last_error: str | None = Field(default=None, description="The reason when status is error")
    problems: list[ProblemEntry] | None = Field(default=None, description="What is wrong, and what to do about it")

    def lines(self, markers: Markers) -> list[str]:
        is_new = self.indexed_commit == self.head_commit
        commit = (self.indexed_commit or "nothing yet")[:12]
        freshness = "up to date" if is_new else f"behind by {count(self.pending_pages, 'page')}"
        excluded = f" ({self.excluded_pages} excluded)" if self.excluded_pages else ""
        files = f", {count(self.attachments, 'attached file')}" if self.attachments else ""
        size = f"{count(self.pages, 'page')}{excluded}{files}, {count(self.passages, 'passage')}"
        return [
            f"{self.status}: {size}, at {commit} ({freshness}), model {self.model}",
            f"last rebuild: {self.rebuild}",
            *([f"error: {markers.wrap(self.last_error)}"] if self.last_error else []),
            *(f"problem: {markers.wrap(problem.message)}\nhint: {problem.hint}" for problem in self.problems or ()),
        ]


class ReindexAnswer(ToolResponse):
    """The result of `reindex`."""

    state: str = Field(description="done, or running: it continues in the background, see index_status")
    pages: int = Field(description="Pages that were indexed again, or that the index has now")
    seconds: float = Field(description="Seconds waited for it")

    def lines(self, _markers: Markers) -> list[str]:
        return [f"{self.state} after {self.seconds:.1f} s: {count(self.pages, 'page')}"]


def status_answer(body: Json, max_tokens: int) -> StatusAnswer:
    """Return the state of the index, with the problems that fit into the budget. Errors: `BudgetError`."""
    problems = [ProblemEntry(message=problem["message"], hint=problem["hint"]) for problem in body["problems"]]

    def answer(shown: list[ProblemEntry], left_out: str | None) -> StatusAnswer:
        return StatusAnswer(
            status=body["status"],
            indexed_commit=body["indexed_commit"],
            head_commit=body["head_commit"],
            pending_pages=body["pending_pages"],
            pages=body["pages"],
            excluded_pages=body.get("excluded_pages", 0),
            attachments=body.get("attachments", 0),
            passages=body["chunks"],
            model=body["model"],
            rebuild=body["rebuild"]["state"],
            last_error=body["last_error"],
            problems=shown or None,
            left_out=left_out,
        )

    return fit_entries(problems, max_tokens, "problem", answer)
