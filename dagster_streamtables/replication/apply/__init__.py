"""Changes → what each row of their target comes to, and the conflicts between them."""
