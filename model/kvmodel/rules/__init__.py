"""The rules: one module an action. `offered` is the policy's guard, `forbidden` the contract's, `apply` the effect."""
