"""Choose which tools a model sees: exact names, globs, prefixes, new names."""

from quickstart import add, book_table, convert_currency, get_weather

from toolcrib import Toolset

if __name__ == "__main__":
    everything = Toolset([get_weather, convert_currency, add, book_table])
    print("all:         ", *everything.names)
    print("include:     ", *everything.select(include=["add", "get_weather"]).names)
    print("exclude:     ", *everything.select(exclude=["book_table"]).names)
    print("allow, deny: ", *everything.select(allow=["*_*"], deny=["book_*"]).names)
    print("prefixed:    ", *everything.prefixed("demo.").names)
    print("renamed:     ", *everything.renamed({"add": "sum_of"}).names)

    # Filters compose, and a toolset is an entry like any other.
    print("together:    ", *Toolset([everything.select(include=["add"]).prefixed("maths."), get_weather]).names)
