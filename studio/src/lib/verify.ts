/** Verifying receipts in the browser, by the SDK's own verifier: what the page shows is computed here, not told. */
import { verifyReceipt, type Verdict } from "redkey-receipts";

/** What the reader trusts, as text: one key in each line, and the answer of a mirror node as JSON. */
export interface Trust {
  keys: string;
  witnesses: string;
  /** How many witnesses must have cosigned; all of them by default. */
  quorum: number | null;
  mirror: string;
}

/** A receipt judged; `error` when it or the keys could not be read at all. */
export interface Judged {
  verdict?: Verdict;
  error?: string;
}

export async function judge(receipt: string, { keys, witnesses, quorum, mirror }: Trust): Promise<Judged> {
  try {
    const policy = { keys: [keys], witnesses: [witnesses], mirror: rowsIn(mirror), ...(quorum === null ? {} : { quorum: Math.max(1, quorum) }) };
    return { verdict: await verifyReceipt(receipt, policy) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** The rows of a page of a mirror node, of a list of pages, or of a list of rows. */
function rowsIn(text: string): unknown[] {
  if (!text.trim()) return [];
  try {
    return [JSON.parse(text) as { messages?: unknown[] } | null].flat().flatMap((one) => one?.messages ?? [one]);
  } catch {
    throw new Error("The answer of the mirror node is not JSON.");
  }
}
