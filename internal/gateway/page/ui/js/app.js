// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The page: which namespace and chat it shows, and what holds its parts together. Its address says which.

import { ChatActions } from './actions.js';
import { ask, whenUnauthorized } from './api.js';
import { ChatView } from './chat.js';
import { Configuration, unsaved } from './configuration.js';
import { account, newChat, signIn } from './dialogs.js';
import { byId, composes, el, onFrame, toast } from './dom.js';
import { keepFocus } from './focus.js';
import { Inbox } from './inbox.js';
import { help, listen } from './keys.js';
import { ChatList } from './list.js';
import { runClock } from './notices.js';
import { Notifier, setUpNotifications } from './notify.js';
import { isPinned } from './pins.js';
import { Search } from './search.js';
import { begin, enter, hasToken, known, remember, resume, signInAtProvider, signOut, whoAmI } from './session.js';
import { plain } from './text.js';
import { themes } from './theme.js';
import { Usage } from './usage.js';
import { SIGNED_OUT } from './words.js';

/** @type {ChatList|null} */
let list = null;
/** @type {ChatView|null} */
let view = null;
/** @type {Inbox|null} what waits for people, while it is shown */
let inbox = null;
/** Where the address shows that: no chat has such a name. */
const WAITING = '~waiting';
/** Where the address shows a search, before its words. */
const SEARCH = '~search';
/** Where the address shows the configuration, before its object. */
const CONFIGURATION = '~configuration';
/** Where the address shows the usage. */
const USAGE = '~usage';
/** What the page shows in place of a chat. @type {{isFor: (namespace: string, what: string) => boolean, stop: () => void}|null} */
let panel = null;
/** The part of the page that shows it. @type {string|undefined} */
let panelPart;
/** Which part of the page shows such a place; any other place is a chat. */
const PARTS = new Map([[WAITING, 'inbox'], [SEARCH, 'found'], [CONFIGURATION, 'config'], [USAGE, 'usage']]);
let notifier = new Notifier((chat) => go(list?.namespace, chat));
const lost = new Set();
let login = 'token';

const address = (...places) => `#/${places.filter(Boolean).map(encodeURIComponent).join('/')}`;
const link = (chat) => address(list?.namespace ?? '', chat);

function place() {
  const [, namespace, chat, message] = location.hash.split('/').map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return '';
    }
  });
  return { namespace: namespace || '', chat: chat || '', message: message || '' };
}

/** Says something above all of the page. @param {string} words */
function warn(words) {
  byId('connection').hidden = false;
  byId('connection').textContent = words;
}

/** Says whether the streams are there. */
function connection(which) {
  return (state, why) => {
    if (why?.status === 401) return; // It is not tried again before the person has signed in, of which unknown() tells.
    if (state === 'lost') lost.add(which);
    else lost.delete(which);
    const words = why?.message ? `Not connected: ${why.message}` : 'Not connected.';
    byId('connection').hidden = lost.size === 0;
    if (lost.size > 0) warn(`${words} Trying again; what you type is kept.`);
  };
}

function route() {
  const { namespace, chat, message } = place();
  if (!namespace) {
    offerNamespaces();
    return;
  }
  remember({ namespace, chat });
  if (list?.namespace !== namespace) {
    list?.stop();
    lost.clear();
    inbox = null;
    notifier = new Notifier((name) => go(namespace, name));
    byId('namespace').value = namespace;
    list = new ChatList(namespace, { changed: listChanged, state: connection('list'), link, menu: openMenu });
  }
  list.select(chat);
  if (view && (view.namespace !== namespace || view.chat !== chat)) {
    view.close();
    lost.delete('chat');
    view = null;
  }
  const part = PARTS.get(chat);
  document.body.dataset.view = chat ? 'chat' : 'list';
  byId('chat').hidden = !chat || Boolean(part);
  byId('nothing').hidden = Boolean(chat);
  for (const id of PARTS.values()) byId(id).hidden = id !== part;
  byId('waiting').href = link(WAITING);
  if (part !== panelPart || !panel?.isFor(namespace, message)) {
    panel?.stop();
    panel = show(chat, namespace, message);
    panelPart = part;
  }
  inbox = chat === WAITING ? inbox ?? new Inbox(byId('inbox-rows'), namespace, link, (words) => toast(words, true)) : null;
  listChanged();
  if (chat && !part && !view) {
    view = new ChatView(namespace, chat, { link, below: (name) => list.below(name), summary: (name) => list.chats.get(name),
      state: connection('chat'), gone: () => { byId('notices').replaceChildren(el('p', { class: 'notice bad' }, 'This chat was deleted.')); } });
  }
  view?.reveal(message);
}

/** @param {string} place @param {string} namespace @param {string} what of the place */
function show(place, namespace, what) {
  switch (place) {
    case SEARCH: return new Search(namespace, what, address, (name) => list.chats.get(name)?.title);
    case CONFIGURATION: return new Configuration(namespace, what, (object) => address(namespace, CONFIGURATION, object), startChat);
    case USAGE: return new Usage(namespace, link);
    default: return null;
  }
}

function listChanged() {
  const waiting = list?.waiting ?? 0;
  byId('waiting').hidden = waiting === 0 && !inbox;
  byId('waiting').textContent = `${waiting} ${waiting === 1 ? 'chat waits' : 'chats wait'} for you`;
  if (list?.synced) {
    notifier.show(list.chats.values(), view?.chat ?? '');
    inbox?.show(list.chats.values());
  }
  document.title = `${waiting ? `(${waiting}) ` : ''}${view ? `${view.chat} · ` : ''}Parley`;
  if (view) onFrame(view.drawPresent);
}

/** The namespaces that the gateway names for the user. @type {string[]} */
let offered = [];

async function namespaces() {
  offered = (await ask('GET', '/namespaces').catch(() => ({ namespaces: [] }))).namespaces;
  byId('namespaces').replaceChildren(...offered.map((name) => el('option', { value: name })));
  if (place().namespace) return;
  if (offered.length === 1) go(offered[0]);
  else offerNamespaces();
}

/** Lets the user choose where there is no namespace in the address. */
function offerNamespaces() {
  const names = offered.slice(0, 30).map((name) => el('a', { class: 'namespace', href: address(name, '') }, plain(name)));
  byId('list-empty').replaceChildren(names.length ? 'Choose a namespace:' : 'Type the name of a namespace to see its chats.', ...names);
  byId('namespace').focus();
}

function go(namespace, chat, message) {
  if (namespace) location.hash = address(namespace, chat, message);
}

/** @param {{model?: string, class?: string}} [given] */
function startChat(given) {
  if (list) newChat(list.namespace, (chat) => go(list.namespace, chat), given);
  else {
    toast('Choose a namespace first.');
    byId('namespace').focus();
  }
}

/** What the open menu is about. @type {ChatActions|null} */
let chosen = null;
/** What its words say that it changes, whatever others have changed since it was opened. @type {Object<string, object>} */
let offers = {};

/** Says what the menu does to a chat, and puts it below the button that opens it. @param {string} chat @param {HTMLElement} at */
function openMenu(chat, at) {
  chosen = new ChatActions(list.namespace, chat, () => list.chats.get(chat));
  const about = chosen.summary() ?? {};
  offers = { suspend: { suspend: !about.suspended }, archive: { archived: !about.archived } };
  const menu = byId('menu');
  for (const [act, words] of [['suspend', about.suspended ? 'Resume' : 'Suspend'], ['archive', about.archived ? 'Unarchive' : 'Archive'],
    ['pin', isPinned(list.namespace, chat) ? 'Unpin' : 'Pin to the top']]) {
    menu.querySelector(`[data-act=${act}]`).textContent = words;
  }
  const { bottom, right } = at.getBoundingClientRect();
  menu.style.inset = `${Math.max(8, Math.min(bottom, innerHeight - 420))}px auto auto ${Math.max(8, right - 230)}px`;
}

/** @type {Object<string, () => void>} what the buttons do */
const acts = {
  new: () => startChat(),
  configure: () => go(list?.namespace, CONFIGURATION),
  usage: () => go(list?.namespace, USAGE),
  back: () => go(list?.namespace, ''),
  interrupt: () => view?.actions.request('Interrupt'),
  changes: () => view?.changes.open(),
  rename: () => chosen.rename(),
  // No one else can open the address of kubectl chat ui.
  share: () => chosen.share(login === 'link' ? '' : new URL(link(chosen.chat), location.href).href),
  pin: () => { chosen.pin(); list.redraw(); },
  copy: () => chosen.copy(),
  export: () => chosen.export(),
  compact: () => chosen.request('Compact'),
  clear: () => chosen.request('Clear'),
  title: () => chosen.request('Title'),
  suspend: () => chosen.change(offers.suspend),
  archive: () => chosen.change(offers.archive),
  delete: async () => {
    const { namespace, chat } = chosen;
    if (await chosen.delete() && view?.chat === chat) go(namespace, '');
  },
  help: () => help(shortcuts),
};

const shortcuts = [
  { keys: ['j', 'ArrowDown'], what: 'next message', act: () => view?.move(1) },
  { keys: ['k', 'ArrowUp'], what: 'message before', act: () => view?.move(-1) },
  { keys: ['G', 'End'], what: 'newest message', act: () => view?.transcript.toEnd() },
  { keys: [']'], what: 'next chat', act: () => go(list?.namespace, list?.neighbour(1)) },
  { keys: ['['], what: 'chat before', act: () => go(list?.namespace, list?.neighbour(-1)) },
  { keys: ['/'], what: 'search among the chats; Enter searches in their messages', act: () => byId('filter').focus() },
  { keys: ['c'], what: 'type a message', act: () => byId('compose').focus() },
  { keys: ['n'], what: 'new chat', act: acts.new },
  { keys: ['e'], what: 'edit the message in focus, or the newest of a person', act: () => view?.editFocused() },
  { keys: ['.'], what: 'stop the turn under way', act: acts.interrupt },
  { keys: ['a'], what: 'go to what waits for you; Enter approves', act: () => (inbox ?? view?.approvals)?.first?.focus() },
  { keys: ['i'], what: 'all that waits for you', act: () => go(list?.namespace, WAITING) },
  { keys: ['?'], what: 'these keys', act: acts.help },
];

function wire() {
  themes();
  listen(shortcuts);
  keepFocus();
  setUpNotifications();
  for (const control of document.querySelectorAll('[data-act]')) {
    control.addEventListener('click', () => {
      control.closest('[popover]')?.hidePopover();
      acts[control.dataset.act]();
    });
  }
  const filter = byId('filter');
  const searchMessages = () => go(list?.namespace, SEARCH, filter.value.trim());
  addEventListener('storage', () => list?.redraw()); // Another tab has pinned or seen a chat.
  filter.addEventListener('input', () => { byId('search').hidden = !filter.value.trim(); });
  filter.addEventListener('keydown', (event) => { if (event.key === 'Escape' && !filter.value) filter.blur(); });
  filter.addEventListener('keydown', (event) => { if (event.key === 'Enter' && !composes(event) && filter.value.trim()) searchMessages(); });
  byId('search').addEventListener('click', searchMessages);
  byId('place').addEventListener('submit', (event) => { event.preventDefault(); go(byId('namespace').value.trim(), ''); });
  byId('namespace').addEventListener('change', () => go(byId('namespace').value.trim(), ''));
  byId('menu-button').addEventListener('click', () => openMenu(view.chat, byId('menu-button')));
  // As an address, its target would be a place without a namespace.
  document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); byId('compose').focus(); });
  window.addEventListener('hashchange', route);
  window.addEventListener('beforeunload', (event) => { if (view?.outbox.items.length || unsaved()) event.preventDefault(); });
  document.addEventListener('visibilitychange', runClock);
  runClock();
}

/** @param {string} message of what does not answer */
function waiting(message) {
  warn(`Not connected: ${plain(message)}. Trying again; what you type is kept.`);
}

/** The button of the account, where the gateway knows who has signed in. */
async function showAccount() {
  const who = login === 'oidc' && known() ? await whoAmI() : null;
  const at = byId('account');
  at.hidden = !who;
  at.textContent = plain(who?.username ?? '');
  at.onclick = () => account(who, signOut);
}

function authenticated() {
  document.body.classList.remove('signed-out');
  byId('connection').hidden = lost.size === 0;
  namespaces();
  showAccount();
}

/** @type {Promise<string>|null} */
let resuming = null;

/** Signs in again. What waits for another credential continues then. @param {string} message */
async function unknown(message) {
  if (login === 'link') {
    warn(`${message}. What you typed stays here: copy it before you close this tab.`);
    return;
  }
  if (byId('sign-in')) return;
  const why = login === 'token' || hasToken() ? message : await resumed();
  if (!why) return;
  warn(SIGNED_OUT);
  askToSignIn(why);
}

/** Asks for a token, or to sign in at the provider. @param {string} why */
function askToSignIn(why) {
  const given = async (token, keep) => {
    const refused = await enter(token, keep);
    if (refused) askToSignIn(refused);
    else authenticated();
  };
  signIn(why, given, login === 'token' ? undefined
    : { open: signInAtProvider, resume: async () => await resumed() === '' });
}

/** Resumes the session once for all who ask at the same time. @returns {Promise<string>} why not */
function resumed() {
  resuming ??= resume(waiting).then((why) => {
    resuming = null;
    if (!why) authenticated();
    return why;
  });
  return resuming;
}

async function start() {
  wire();
  const found = await begin().catch((no) => {
    toast(`The page cannot be opened: ${no.message}. Load it again.`, true);
    return null;
  });
  if (!found) return;
  login = found.login;
  whenUnauthorized(unknown);
  document.body.classList.toggle('signed-out', !known());
  if (known()) authenticated();
  // Nothing is done before it is known for whom.
  else await unknown(found.refused || (login === 'link' ? 'This page is opened by the link that kubectl chat ui prints: run it again'
    : 'Use a token that the cluster’s API server accepts. It decides what you may see and do.'));
  const { namespace, chat } = place();
  if (!namespace && found.place.namespace) {
    history.replaceState(null, '', address(found.place.namespace, found.place.chat));
  } else if (!chat && !namespace) {
    byId('namespace').focus();
  }
  route();
}

start();
