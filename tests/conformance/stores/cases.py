"""The conformance suite of sequenced stores, whole. A store's test says how it is made:

class TestMyStore(SequencedStoreCases):
    @pytest.fixture
    def maker(self, tmp_path): ...
"""

from __future__ import annotations

from tests.conformance.stores.content_cases import ContentCases
from tests.conformance.stores.follow_cases import FollowCases
from tests.conformance.stores.ledger_cases import LedgerCases
from tests.conformance.stores.row_cases import RowCases
from tests.conformance.stores.unit_cases import UnitCases
from tests.conformance.stores.upload_cases import UploadCases


class SequencedStoreCases(LedgerCases, UnitCases, RowCases, ContentCases, UploadCases, FollowCases):
    """Everything a sequenced store has to do."""
