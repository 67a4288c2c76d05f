"""KV-cache offloading: blocks of a device pool are stored to host memory and loaded back, asynchronously.

`kvoffload.engine.Engine` is the control plane (plain data), `kvoffload.worker.Worker` drives one rank's streams, and
`kvoffload.runtime.Runtime` joins one engine with its workers on a `kvoffload.devices.device.Device`. Importing this
package, the control plane or the ledger never imports torch.
"""
