"""Images of an entry as pictures of PIL, for trackers that encode them themselves."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import PIL.Image

from webapp.client.mirrors import Entry
from webapp.client.mirrors.entries import picture
from webapp.client.tracking.sender import say


def pictures(entry: Entry) -> Iterator[tuple[str, PIL.Image.Image, str]]:
    """Yields name, picture and caption of each image. One that is damaged is left out, and named
    on stderr: it would be damaged in every later attempt, too."""
    for name, image in entry.images.items():
        try:
            opened = PIL.Image.open(BytesIO(picture(image)))
            opened.load()
        except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as error:
            say(f"image {name!r} of step {entry.step} cannot be read, and is left out: {error}")
        else:
            yield name, opened, image["caption"]
