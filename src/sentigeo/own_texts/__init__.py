"""Your own texts: read, grouped, mapped, explored."""
