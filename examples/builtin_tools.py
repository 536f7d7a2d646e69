"""Tools that come with toolcrib: arithmetic, time, and the files of one folder."""

import tempfile
from pathlib import Path

from toolcrib import ToolCall, Toolset, builtin, call_tools, file_tools

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "trip.txt").write_text("Train to Oslo: 349\nHotel: 1290\n", encoding="utf-8")
        tools = Toolset([*builtin.math, *builtin.time, *file_tools(folder)])
        calls = [
            ToolCall("1", "search_files", {"pattern": "hotel"}),
            ToolCall("2", "calculate", {"expression": "349 + 1290"}),
            ToolCall("3", "calculate", {"expression": "9 ** 9 ** 9"}),
            ToolCall("4", "time_between", {"start": "2026-11-22", "end": "2026-12-24T18:00"}),
            ToolCall("5", "current_time", {"timezone": "Oslo"}),
            ToolCall("6", "read_file", {"path": "../../etc/passwd"}),
        ]
        for result in call_tools(calls, tools):
            print(f"{result.call.name}: {result.kind}: {result.text}")
