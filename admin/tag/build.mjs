// Builds the tag into the folder that is given: node build.mjs DIR
import {execFileSync} from 'node:child_process';
import {copyFileSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const to = resolve(process.argv[2]);
const common = {absWorkingDir: here, bundle: true, minify: true, target: 'es2022', legalComments: 'none', logLevel: 'warning'};

rmSync(to, {recursive: true, force: true});
// The script, and the modules that it loads from beside itself.
await build({...common, entryPoints: ['src/tag.ts'], format: 'iife', outfile: join(to, 'tag.js')});
const modules = ['tag-consent', 'tag-debug'];
await build({...common, entryPoints: modules.map(name => `src/${name}.ts`), format: 'esm', outdir: to});

// The package: what an import by name finds, with types.
const folder = join(to, 'package');
await build({...common, entryPoints: ['src/index.ts'], format: 'esm', minify: false, external: ['./tag-*.js'], outfile: join(folder, 'index.js')});
modules.forEach(name => copyFileSync(join(to, `${name}.js`), join(folder, `${name}.js`)));
execFileSync(process.execPath, [join(here, 'node_modules/typescript/bin/tsc'), '-p', here, '--outDir', folder], {stdio: 'inherit'});
const {name, version, description, license} = JSON.parse(readFileSync(join(here, 'package.json')));
writeFileSync(join(folder, 'package.json'), JSON.stringify({
  name, version, description, license, type: 'module', exports: {'.': {types: './index.d.ts', default: './index.js'}},
}, null, 2) + '\n');
