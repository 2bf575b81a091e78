"""Write the generated part of the TypeScript SDK."""

from __future__ import annotations

from tools.typescript import ROOT, generated

for name, data in generated().items():
    path = ROOT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(f"{name}: {len(data):,} bytes")
