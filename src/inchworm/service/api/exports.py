"""The route that writes out what a crawl has, in every form there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, BinaryIO

from fastapi import Path, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from inchworm.app import FORMATS, Target
from inchworm.app.act.content.export import CHARACTERS, CONTENT, TOLD, ExportOptions
from inchworm.errors import WrongUse
from inchworm.service.api.streaming import Told, streamed
from inchworm.service.api.web import Frame, Home, Service, api_routes, as_file, crawl_of, refusals

routes = api_routes("pages", "/api/v1/crawl/{crawl_id}")

FILES = {
    "jsonl": ("jsonl", "application/x-ndjson"),
    "csv": ("csv", "text/csv; charset=utf-8"),
    "parquet": ("parquet", "application/vnd.apache.parquet"),
    "chunks": ("chunks.jsonl", "application/x-ndjson"),
    "data": ("data.jsonl", "application/x-ndjson"),
    "markdown": ("markdown.zip", "application/zip"),
    "files": ("files.zip", "application/zip"),
    "sitemap": ("xml", "application/xml"),
    "urls": ("txt", "text/plain; charset=utf-8"),
    "fingerprints": ("json", "application/json"),
    "warc": ("warc.gz", "application/warc"),
}
"""How the name of a format's file ends, and its type."""

_MOST_NAMES = 100
_MOST_CHARACTERS = 10_000_000
Names = list[Annotated[str, StringConstraints(max_length=1000)]]


class ExportQuery(BaseModel):
    """What is to be written. Lists may be repeated, or have commas between their names."""

    model_config = ConfigDict(extra="forbid")

    format: str = Field(max_length=50, description=f"one of {', '.join(FILES)}", examples=["jsonl"])
    run: int | None = Field(None, ge=0, lt=1 << 62, description="the record of one run; the crawl now, if left out")
    since: str | None = Field(None, min_length=1, max_length=50, description="what changed since this run or date")
    only: Names = Field([], max_length=_MOST_NAMES, description=f"only these changes: {', '.join(TOLD)}")
    unique: bool = Field(False, description="each content once, whatever URLs have it")
    columns: Names = Field([], max_length=_MOST_NAMES, description="exactly these columns")
    more: Names = Field(
        [],
        max_length=_MOST_NAMES,
        alias="with",
        description=f"these columns too: {', '.join(column.name for column in CONTENT)}",
    )
    types: Names = Field([], max_length=_MOST_NAMES, description="of `files`: only these, as pdf or image/*")
    bom: bool = Field(False, description="of `csv`: begin with the mark by which Excel knows UTF-8")
    images: bool = Field(False, description="of `markdown`: also the images that the crawl has")
    chunk_size: int | None = Field(
        None, ge=1, le=_MOST_CHARACTERS, description=f"of `chunks`: characters at most; {CHARACTERS}, if left out"
    )
    chunk_overlap: int = Field(
        0, ge=0, le=_MOST_CHARACTERS, description="of `chunks`: how much of the one before to begin with"
    )

    frame: Frame = None

    def wanted(self) -> ExportOptions:
        return ExportOptions(
            run=self.run,
            since=self.since,
            only=_split(self.only),
            unique=self.unique,
            columns=_split(self.columns),
            more=_split(self.more),
            types=_split(self.types),
            mark=self.bom,
            images=self.images,
            chunk_size=self.chunk_size or 0,
            chunk_overlap=self.chunk_overlap,
            frame=self.frame or "",
        )


def _split(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip())


@routes.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {kind.partition(";")[0]: {} for _, kind in FILES.values()}}, **refusals(404, 409)},
)
def export(
    app: Home,
    verbs: Service,
    crawl_id: Annotated[str, Path(max_length=64, examples=["7fb21d4d1e"])],
    asked: Annotated[ExportQuery, Query()],
) -> Any:
    """What a crawl has, as one file, as it stands now: pages as a table, as chunks for retrieval, as Markdown, as they
    were served, and more. It is sent while it is written, and ends when whoever asked for it has gone."""
    crawl, form, wanted = crawl_of(app, crawl_id), asked.format, asked.wanted()
    if form not in FILES:
        raise WrongUse(f"There is no export format {form!r}.", f"Known ones: {', '.join(FILES)}.")
    ending, kind = FILES[form]
    name = f"{crawl.crawl_id}{'' if asked.run is None else f'-run{asked.run}'}.{ending}"
    if form == "sitemap":
        # There is a limit to its size, and whether it keeps to it is known at its end.
        return as_file(name, kind, lambda out: app.export.to_file(crawl.crawl_id, form, out, wanted))

    def write(out: BinaryIO, told: Told) -> None:
        # In a thread of its own, and after this request has given back what it was lent.
        with verbs.lent() as own:
            verb = own.export.to_folder if FORMATS[form].target is Target.FOLDER else own.export.to_file
            verb(crawl.crawl_id, form, out, wanted, told)

    return streamed(name, kind, write)
