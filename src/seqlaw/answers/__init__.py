"""How every answer looks, and the public functions that give them."""
