"""Which commit of the target's repository has brought a failure in."""
