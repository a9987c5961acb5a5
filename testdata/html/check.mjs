// Opens a report in a headless Chromium and holds it against the JSON report of the same run:
//
//   node check.mjs PAGE.html REPORT.json [FOLDER FOR SCREENSHOTS]
//
// At 400 and at 1400 pixels, light and dark: nothing on the console, no request but for the page, no scrolling sideways,
// every cell of the matrix as in the JSON, its reason seen when it has the focus or the pointer, every cell reached by
// Tab, contrast of at least 4.5. Uses nothing but Node's own WebSocket and the browser's DevTools protocol.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [page, json, shots] = process.argv.slice(2);
if (!page || !json) {
    console.error('usage: check.mjs PAGE.html REPORT.json [FOLDER]');
    process.exit(2);
}
// One object, or one a line.
const text = readFileSync(json, 'utf8');
let reports;
try {
    reports = [JSON.parse(text)];
} catch {
    reports = text.trim().split('\n').map(line => JSON.parse(line));
}

const wrong = [];
// Images without a matrix.
const skipped = new Set();
const claim = (holds, what) => { if (!holds) wrong.push(what); };

const profile = mkdtempSync(join(tmpdir(), 'imagelint-html-'));
const browser = spawn(process.env.CHROMIUM ?? 'chromium', [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
    '--remote-debugging-port=0', `--user-data-dir=${profile}`, 'about:blank',
], { stdio: ['ignore', 'ignore', 'pipe'] });
const ended = new Promise(done => browser.on('exit', done));

const address = await new Promise((found, failed) => {
    let told = '';
    browser.stderr.on('data', data => {
        told += data;
        const match = told.match(/DevTools listening on (ws:\S+)/);
        if (match) found(match[1]);
    });
    browser.on('exit', code => failed(new Error(`the browser ended with ${code}: ${told}`)));
    browser.on('error', failed);
});

const socket = new WebSocket(address);
await new Promise((open, failed) => { socket.onopen = open; socket.onerror = failed; });
let last = 0;
const waiting = new Map();
const listeners = [];
socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.id) {
        const { done, failed } = waiting.get(message.id);
        waiting.delete(message.id);
        message.error ? failed(new Error(message.error.message)) : done(message.result);
    } else {
        listeners.forEach(listen => listen(message));
    }
};
// What is still waited for when the browser goes is not answered any more.
socket.onclose = () => waiting.forEach(({ failed }) => failed(new Error('the browser is gone')));
const send = (method, params = {}, sessionId) => new Promise((done, failed) => {
    waiting.set(++last, { done, failed });
    socket.send(JSON.stringify({ id: last, method, params, sessionId }));
});

try {
    for (const width of [400, 1400]) {
        for (const scheme of ['light', 'dark']) {
            await look(width, scheme);
        }
    }
} finally {
    await send('Browser.close').catch(() => {});
    await ended;
    rmSync(profile, { recursive: true, force: true });
}
if (wrong.length) {
    console.log(wrong.slice(0, 40).join('\n'));
    console.log(`${wrong.length} things are wrong`);
    process.exit(1);
}
console.log('the page holds');

async function look(width, scheme) {
    const at = `${width} px, ${scheme}`;
    const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
    const call = (method, params) => send(method, params, sessionId);
    const run = async expression => {
        const { result, exceptionDetails } = await call('Runtime.evaluate', { expression, returnByValue: true });
        if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        return result.value;
    };
    const url = pathToFileURL(resolve(page)).href;
    let loaded;
    const ready = new Promise(done => { loaded = done; });
    const listen = ({ method, params, sessionId: of }) => {
        if (of !== sessionId) return;
        if (method === 'Page.loadEventFired') loaded();
        if (method === 'Runtime.consoleAPICalled') wrong.push(`${at}: console: ${JSON.stringify(params.args)}`);
        if (method === 'Runtime.exceptionThrown') wrong.push(`${at}: exception: ${params.exceptionDetails.text}`);
        if (method === 'Log.entryAdded') wrong.push(`${at}: log: ${params.entry.text}`);
        if (method === 'Network.requestWillBeSent') claim(params.request.url === url, `${at}: asks for ${params.request.url}`);
    };
    listeners.push(listen);
    await call('Page.enable');
    await call('Page.bringToFront');
    await call('Runtime.enable');
    await call('Log.enable');
    await call('Network.enable');
    await call('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 });
    await call('Emulation.setEmulatedMedia', { features: [
        { name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' },
    ] });
    if (width < 600) await call('Emulation.setTouchEmulationEnabled', { enabled: true });
    await call('Page.navigate', { url });
    await ready;

    const wide = await run(`[document.documentElement.scrollWidth, innerWidth]`);
    claim(wide[0] <= wide[1], `${at}: the page is ${wide[0]} px wide`);
    // What unfolds does not make it wider.
    await run(`document.querySelectorAll('details').forEach(d => { d.open = true })`);
    const open = await run(`[document.documentElement.scrollWidth, innerWidth]`);
    claim(open[0] <= open[1], `${at}: unfolded, the page is ${open[0]} px wide`);

    await unread(at, run);
    matrix(at, await run(`[...document.querySelectorAll('td[data-target]')].map(td => ({
        image: td.closest('article').id, target: td.dataset.target, component: td.dataset.component ?? '',
        version: td.dataset.version ?? '', verdict: td.dataset.verdict,
        word: td.querySelector('button').innerText, why: td.querySelector('.why').textContent,
    }))`));
    await reasons(at, call, run, width < 600);
    for (const low of await run(`(${contrasts})()`)) wrong.push(`${at}: contrast ${low}`);
    await run(`document.querySelectorAll('details').forEach(d => { d.open = false })`);
    if (shots) await shoot(call, run, `${width}-${scheme}`);
    listeners.splice(listeners.indexOf(listen), 1);
    await send('Target.closeTarget', { targetId });
}

// Images that could not be looked at have no matrix, and nothing but `unknown` in the JSON.
async function unread(at, run) {
    const found = await run(`[...document.querySelectorAll('article[id]')].filter(a => a.querySelector('.sum') === null
        && a.id.match(/^i[0-9]+$/)).map(a => [a.id, a.innerText])`);
    for (const [image, text] of found) {
        const report = reports[Number(image.slice(1))];
        claim(text.includes('unread') && report.image.verdict === 'unknown', `${at}: ${image} is not told as unread`);
        claim((report.targets ?? []).every(t => t.verdict === 'unknown'), `${at}: ${image} was judged`);
        skipped.add(image);
    }
}

// The cells are those of the reports, no more and no fewer.
function matrix(at, cells) {
    const key = c => [c.image, c.target, c.component, c.version, c.verdict].join('\u0001');
    // What is installed twice has as many cells: they are counted.
    const tally = keys => keys.reduce((all, one) => all.set(one, (all.get(one) ?? 0) + 1), new Map());
    const shown = tally(cells.map(key));
    for (const cell of cells) {
        claim(cell.word.trim().endsWith(cell.verdict), `${at}: ${cell.component} says ${cell.word}`);
        claim(cell.why.trim().length > 10, `${at}: ${cell.component} on ${cell.target} has no reason`);
    }
    const list = [];
    reports.forEach((report, number) => {
        const image = `i${number}`;
        if (skipped.has(image)) return;
        for (const target of report.targets ?? []) {
            list.push(key({ image, target: target.name, component: '', version: '', verdict: target.verdict }));
            for (const c of target.components) {
                list.push(key({ image, target: target.name, component: c.name, version: c.version ?? '', verdict: c.verdict }));
            }
        }
    });
    const told = tally(list);
    const times = (all, one) => all.get(one) ?? 0;
    for (const one of told.keys()) {
        claim(times(shown, one) >= told.get(one), `${at}: the page lacks ${one.replaceAll('\u0001', ' · ')}`);
    }
    for (const one of shown.keys()) {
        claim(times(told, one) >= shown.get(one), `${at}: the JSON lacks ${one.replaceAll('\u0001', ' · ')}`);
    }
}

// Each cell is reached by Tab, in order, and then its reason is on the screen.
async function reasons(at, call, run, touch) {
    const all = await run(`document.querySelectorAll('td[data-target] button').length`);
    const most = Math.min(all, 60);
    await run(`document.activeElement.blur(); scrollTo(0, 0)`);
    let reached = 0;
    for (let steps = 0; reached < most && steps < most + 400; steps++) {
        for (const type of ['keyDown', 'keyUp']) {
            await call('Input.dispatchKeyEvent', { type, key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 });
        }
        const seen = await run(`(() => {
            const td = document.activeElement.closest('td[data-target]');
            if (!td) return null;
            const why = td.querySelector('.why'), box = why.getBoundingClientRect();
            const cell = td.getBoundingClientRect();
            const word = td.querySelector('button').getBoundingClientRect();
            return { under: word.top < box.bottom && word.bottom > box.top + 1,
                shown: getComputedStyle(why).display, top: box.top, bottom: box.bottom, width: box.width, height: innerHeight, wide: innerWidth, left: cell.left, right: cell.right };
        })()`);
        if (!seen) continue;
        reached++;
        claim(seen.shown === 'block' && seen.top >= 0 && seen.bottom <= seen.height + 1 && seen.width > 200,
            `${at}: the reason of cell ${reached} is not seen: ${JSON.stringify(seen)}`);
        claim(!seen.under, `${at}: cell ${reached} has the focus and lies under its own reason`);
        claim(seen.right > 0 && seen.left < seen.wide, `${at}: cell ${reached} has the focus and is out of sight`);
    }
    claim(reached === most, `${at}: Tab reaches ${reached} of ${all} cells`);
    // And by the pointer, or the finger.
    const place = await run(`(() => {
        document.activeElement.blur();
        const td = document.querySelector('td[data-target]');
        if (!td) return null;
        td.scrollIntoView({ block: 'center', behavior: 'instant' });
        const box = td.getBoundingClientRect();
        return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
    })()`);
    if (!place) return;
    // The browser makes a click of a tap in its own time, and none while it is busy.
    let shown;
    for (let tries = 0; tries < 50 && shown !== 'block'; tries++) {
        if (touch && tries % 10 === 0) {
            await call('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [place] });
            await call('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
        } else if (!touch) {
            await call('Input.dispatchMouseEvent', { type: 'mouseMoved', ...place });
        }
        if (tries) await new Promise(done => setTimeout(done, 100));
        shown = await run(`getComputedStyle(document.querySelector('td[data-target] .why')).display`);
    }
    claim(shown === 'block', `${at}: the reason does not show under the ${touch ? 'finger' : 'pointer'}`);
    if (!touch) await call('Input.dispatchMouseEvent', { type: 'mouseMoved', x: 1, y: 1 });
}

// Runs in the page: texts whose contrast with what is behind them is below 4.5.
function contrasts() {
    const parse = colour => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => {
        const part = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const behind = node => {
        for (let n = node; n; n = n.parentElement) {
            const colour = parse(getComputedStyle(n).backgroundColor);
            if (colour.length < 4 || colour[3] > 0.99) return colour;
        }
        return [255, 255, 255];
    };
    const low = new Set();
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const node = walk.currentNode.parentElement;
        if (!walk.currentNode.data.trim() || node.closest('.away, .why, .skip, summary::marker')) continue;
        const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) low.add(`${ratio.toFixed(2)}: ${node.tagName}.${node.className} ${walk.currentNode.data.trim().slice(0, 40)}`);
    }
    return [...low];
}

async function shoot(call, run, name) {
    mkdirSync(shots, { recursive: true });
    await run(`document.activeElement.blur(); scrollTo(0, 0)`);
    const height = Math.min(await run(`document.documentElement.scrollHeight`), 6000);
    const { data } = await call('Page.captureScreenshot', {
        captureBeyondViewport: true, clip: { x: 0, y: 0, width: await run('innerWidth'), height, scale: 1 },
    });
    writeFileSync(join(shots, `${name}.png`), Buffer.from(data, 'base64'));
    // With a reason on the screen.
    await run(`document.querySelector('td[data-target] button')?.focus()`);
    const focus = await call('Page.captureScreenshot', {});
    writeFileSync(join(shots, `${name}-focus.png`), Buffer.from(focus.data, 'base64'));
}
