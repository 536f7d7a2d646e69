"""A function that takes its process down, in a process that may be taken down."""

import os

from toolcrib import Limits, ProcessExecutor, ToolCall, Toolset, call_tools


def parse(document: str) -> int:
    """Count the words of a document; a broken one crashes the parser.

    Args:
        document: The text.
    """
    if "\0" in document:
        os.abort()
    while "forever" in document:
        continue
    return len(document.split())


if __name__ == "__main__":
    with ProcessExecutor(workers=2) as executor:
        tools = Toolset(executor.tools([parse]))
        documents = ["a b c", "a \0 c", "forever and ever", "the end"]
        calls = [ToolCall(str(number), "parse", {"document": text}) for number, text in enumerate(documents)]
        for result in call_tools(calls, tools, limits=Limits(deadline=2)):
            print(f"{result.call.id} {result.kind}: {result.text}")
