/** Verifying receipts in the browser, by the SDK's own verifier: what the page shows is computed here, not told. */
import { verifyReceipt, type Verdict } from "redkey-receipts";

/** A receipt judged; `error` when it or the keys could not be read at all. */
export interface Judged {
  verdict?: Verdict;
  error?: string;
}

export async function judge(receipt: string, keys: string): Promise<Judged> {
  try {
    return { verdict: await verifyReceipt(receipt, { keys: keys.split("\n").map((key) => key.trim()).filter(Boolean) }) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
