"""WHERE IT IS KEPT: adapters of the ledger's ports. `memory` for simulation, `sqlite` as the embedded default;
`opening` chooses one."""
