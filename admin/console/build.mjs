// Builds the page into the folder that is given: node build.mjs DIR
import {copyFileSync, mkdirSync, renameSync, rmSync} from 'node:fs';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const to = resolve(process.argv[2]);
const next = `${to}.new`;  // the folder is never there in part

rmSync(next, {recursive: true, force: true});
mkdirSync(next, {recursive: true});
await build({
  absWorkingDir: here, bundle: true, minify: true, target: 'es2022', format: 'esm', legalComments: 'none', logLevel: 'warning',
  define: {'process.env.NODE_ENV': '"production"'},
  entryPoints: {console: 'src/main.ts', style: 'src/style.css'}, outdir: next,
});
['index.html', 'icon.svg'].forEach(name => copyFileSync(join(here, 'src', name), join(next, name)));
rmSync(to, {recursive: true, force: true});
renameSync(next, to);
