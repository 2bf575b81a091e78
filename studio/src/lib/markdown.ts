/** Markdown as blocks of text: headings, items, code and paragraphs. No markup is made from it, so nothing in it runs. */
export interface Block {
  kind: "heading" | "item" | "code" | "text";
  text: string;
}

export function markdown(source: string): Block[] {
  const blocks: Block[] = [];
  let code: string[] | undefined;
  let text: string[] = [];
  const flush = () => {
    if (text.length) blocks.push({ kind: "text", text: text.join(" ") });
    text = [];
  };
  for (const line of source.split(/\r?\n/)) {
    if (line.startsWith("```")) {
      flush();
      if (code) blocks.push({ kind: "code", text: code.join("\n") });
      code = code ? undefined : [];
    } else if (code) code.push(line);
    else if (/^#{1,6} /.test(line)) {
      flush();
      blocks.push({ kind: "heading", text: line.replace(/^#+ /, "") });
    } else if (/^\s*([-*+]|\d+\.) /.test(line)) {
      flush();
      blocks.push({ kind: "item", text: line.replace(/^\s*([-*+]|\d+\.) /, "") });
    } else if (!line.trim()) flush();
    else text.push(line.trim());
  }
  if (code) blocks.push({ kind: "code", text: code.join("\n") });
  flush();
  return blocks;
}
