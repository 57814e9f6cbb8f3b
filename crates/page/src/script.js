// The console: takes what is new every few seconds while somebody looks, and nothing otherwise.
'use strict';

const REFRESH_MS = 5000;

const byId = (id) => document.getElementById(id);

// What tables were scrolled to stays.
function replace(now, text) {
  const scrolled = Array.from(now.querySelectorAll('.wide'), (one) => one.scrollLeft);
  now.innerHTML = text;
  now.querySelectorAll('.wide').forEach((one, place) => { one.scrollLeft = scrolled[place] || 0; });
}

function refreshes(now) {
  const stale = byId('stale');
  let since = new Date();
  const refresh = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch('/console/now' + location.search, { cache: 'no-store' });
      if (answer.status === 401) return location.reload();
      if (!answer.ok) throw new Error(answer.status);
      replace(now, await answer.text());
      since = new Date();
      stale.hidden = true;
    } catch {
      stale.textContent = 'The server does not answer. What is shown is of '
        + since.toLocaleTimeString() + '. Next: see whether the process runs, and its log.';
      stale.hidden = false;
    }
  };
  let asked = Promise.resolve();
  const next = () => { asked = asked.then(refresh); };
  setInterval(next, REFRESH_MS);
  document.addEventListener('visibilitychange', next);
}

function signsIn(form) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const token = byId('token').value.trim();
    const headers = { Authorization: 'Bearer ' + token };
    const answer = await fetch('/console/sign-in', { headers, cache: 'no-store' }).catch(() => null);
    if (answer && answer.ok) return location.reload();
    byId('refused').hidden = false;
  });
}

function looks(form) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const asked = new URLSearchParams({ space: byId('space').value, key: byId('key').value });
    const answer = await fetch('/console/key?' + asked, { cache: 'no-store' }).catch(() => null);
    if (answer && answer.status === 401) return location.reload();
    if (answer && answer.ok) byId('found').innerHTML = await answer.text();
    else byId('found').textContent = 'The server does not answer, or the key is longer than 8 KiB.';
  });
}

if (byId('stale')) refreshes(byId('now'));
if (byId('sign-in')) signsIn(byId('sign-in'));
if (byId('look')) looks(byId('look'));
if (byId('sign-out')) {
  byId('sign-out').addEventListener('click', async () => {
    await fetch('/console/sign-out', { cache: 'no-store' }).catch(() => null);
    location.reload();
  });
}
