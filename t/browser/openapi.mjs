// Checks what nginx-ads api says of itself by the schema of OpenAPI 3.1, and its answers by what it says. The names of the
// answers' operations, their statuses and bodies are in the file ANSWERS.
import {readFileSync} from 'node:fs';
import {Validator} from '@seriousme/openapi-schema-validator';
import Ajv from 'ajv/dist/2020.js';

const {description, answers} = JSON.parse(readFileSync(process.env.ANSWERS, 'utf8'));
let failed = 0;
const ok = (fine, name, ...why) => {
  failed += fine ? 0 : 1;
  console.log(`${fine ? 'ok' : 'not ok'} ${++ok.count} - ${name}`);
  if (!fine) {
    why.forEach(reason => console.log(`# ${JSON.stringify(reason)}`));
  }
};
ok.count = 0;

// ---- the document ----

const valid = async document => (await new Validator().validate(structuredClone(document))).valid;
const {valid: fine, errors} = await new Validator().validate(structuredClone(description));
ok(fine, 'the description is OpenAPI 3.1', errors);
const broken = change => {
  const copy = structuredClone(description);
  change(copy);
  return copy;
};
for (const [name, change] of Object.entries({
  'a parameter without a place': copy => { delete copy.paths['/campaigns/{id}'].get.parameters[0].in; },
  'a response without a description': copy => { delete copy.paths['/me'].get.responses['200'].description; },
  'a reference that leads nowhere': copy => { delete copy.components.schemas.Error; },
})) {
  ok(!await valid(broken(change)), `${name} is not`);
}

// ---- its schemas ----

// Strict: an unknown keyword, or one that does not apply to the type, is an error.
const ajv = new Ajv({strictSchema: true, strictTypes: false, validateFormats: false, allErrors: true});
ajv.addVocabulary(['components']);
ajv.addSchema({$id: 'api', components: description.components});
const validators = new Map();
const validator = ref => {
  if (!validators.has(ref)) {
    validators.set(ref, ajv.compile({$ref: `api${ref}`}));
  }
  return validators.get(ref);
};
for (const name of Object.keys(description.components.schemas)) {
  let problem = '';
  try {
    validator(`#/components/schemas/${name}`);
  } catch (error) {
    problem = error.message;
  }
  ok(!problem, `the schema ${name} is strict JSON Schema 2020-12`, problem);
}

// What an answer has beside what is described would go unseen.
const open = new Set();
const visit = (schema, path) => {
  if (schema === null || typeof schema !== 'object') {
    return;
  }
  const types = [schema.type].flat();
  if (types.includes('object') && schema.additionalProperties === undefined && schema.maxProperties !== 0) {
    open.add(path);
  }
  for (const [name, one] of Object.entries(schema.properties ?? {})) {
    visit(one, `${path}.${name}`);
  }
  visit(schema.items, `${path}[]`);
  visit(schema.additionalProperties, `${path}.*`);
};
const answered = new Set();
const follow = schema => {
  for (const [, name] of JSON.stringify(schema).matchAll(/#\/components\/schemas\/(\w+)/g)) {
    if (!answered.has(name)) {
      answered.add(name);
      follow(description.components.schemas[name]);
    }
  }
};
for (const operations of Object.values(description.paths)) {
  Object.values(operations).forEach(operation => follow(operation.responses));
}
answered.forEach(name => visit(description.components.schemas[name], name));
// Of OpenAPI itself, and of ads_status.
const foreign = ['Description', 'Description.info', 'Description.paths', 'Description.components', 'Health.node'];
ok([...open].every(path => foreign.includes(path)), 'every object of an answer says what it has', [...open].filter(path => !foreign.includes(path)));

// ---- the answers ----

const operations = new Map(Object.values(description.paths).flatMap(Object.values).map(operation => [operation.operationId, operation]));
const wrong = [];
const seen = new Map();
for (const {operation, status, body} of answers) {
  const {responses} = operations.get(operation);
  const ref = (responses[status] ?? responses.default).content['application/json'].schema.$ref.slice(1);
  const check = validator(`#${ref}`);
  if (!check(body)) {
    wrong.push({operation, status, errors: check.errors.slice(0, 3).map(({instancePath, message, params}) => [instancePath, message, params])});
  }
  seen.set(operation, (seen.get(operation) ?? new Set()).add(status));
  // An answer with one more member, or without its first, is none.
  if (body && typeof body === 'object' && !Array.isArray(body) && !foreign.includes(ref.split('/').at(-1))) {
    if (check({...body, another: 1})) {
      wrong.push({operation, status, errors: 'one more member goes unseen'});
    }
  }
}
ok(wrong.length === 0, `${answers.length} answers are as described`, ...wrong.slice(0, 20));
const documents = [...operations.values()].filter(operation => Object.values(operation.responses).some(({content}) => content['text/html'])).map(({operationId}) => operationId);
const missing = [...operations.keys()].filter(name => !documents.includes(name) && ![...seen.get(name) ?? []].some(status => status < 300));
ok(missing.length === 0, 'each operation has one that succeeded', missing);
console.log(`1..${ok.count}`);
process.exitCode = failed ? 1 : 0;
