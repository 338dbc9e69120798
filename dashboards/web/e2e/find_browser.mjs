// Finds the browser for the walks, or installs it.
import { find } from './browser.mjs';

console.log((await find()).executablePath);
