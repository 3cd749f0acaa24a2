"""Query text → a syntax tree with every name bound, or a refusal that says where and why."""
