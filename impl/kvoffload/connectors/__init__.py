"""The two disciplines: how a block is kept safe while a copy reads or writes it."""
