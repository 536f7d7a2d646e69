"""A skill: methods that share state, such as a client, a key or a file, given to a model together."""

from toolcrib import BaseSkill, Tool, ToolCall, ToolResponse, Toolset, call_tools, tool_from_function


class Notes(BaseSkill):
    """Notes that live as long as the object."""

    instructions = "Look at the notes before you add one."

    def __init__(self) -> None:
        self.notes: list[str] = []

    def get_tools(self) -> list[Tool]:
        """Return the methods that are tools."""
        return [tool_from_function(self.add_note), tool_from_function(self.list_notes)]

    def add_note(self, text: str) -> ToolResponse:
        """Add a note.

        Args:
            text: What to remember.
        """
        if text in self.notes:
            return ToolResponse(success=False, message="That note is there already.")
        self.notes.append(text)
        return ToolResponse(success=True, message=f"Note {len(self.notes)} added.")

    def list_notes(self) -> list[str]:
        """List all notes."""
        return self.notes


if __name__ == "__main__":
    tools = Toolset([Notes()])
    calls = [
        ToolCall("1", "add_note", {"text": "buy milk"}),
        ToolCall("2", "add_note", {"text": "buy milk"}),
        ToolCall("3", "list_notes"),
    ]
    for call in calls:
        [result] = call_tools([call], tools)
        print(f"{call.name}: {result.kind}: {result.text}")
