"""A person's own texts: read, grouped, mapped, explored."""
