import './browser.test.mjs';
import './page.test.mjs';
import './requests.test.mjs';
import './measure.test.mjs';
import './frame.test.mjs';
import {run} from './harness.mjs';

await run();
