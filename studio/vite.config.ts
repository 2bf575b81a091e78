import { svelte } from "@sveltejs/vite-plugin-svelte";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// Relative addresses, so that the page works behind a proxy that adds a prefix.
export default defineConfig({
  base: "./",
  plugins: [svelte()],
  resolve: {
    alias: { redkey: here("../sdk/typescript/src/index.ts"), "redkey-receipts": here("../sdk/typescript/src/receipts/index.ts") },
  },
  build: {
    outDir: here("../src/redkey/studio/assets"),
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // All style is 4 KB: one file that is there before the first paint.
    cssCodeSplit: false,
    rollupOptions: {
      output: {
        entryFileNames: "files/[name]-[hash].js",
        chunkFileNames: "files/[name]-[hash].js",
        assetFileNames: "files/[name]-[hash][extname]",
      },
    },
  },
});
