// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// One chat: what its stream tells, and what can be done with it.

import { attempt, ChatActions } from './actions.js';
import { ask, download, inNamespace, ofChat, ofMessage, upload } from './api.js';
import { ApprovalPanel } from './approval.js';
import { Changes } from './changes.js';
import { Composer } from './composer.js';
import { confirmed } from './dialogs.js';
import { announce, byId, el, fill, onFrame, toast } from './dom.js';
import { edit, edited } from './editor.js';
import { save } from './files.js';
import { showNotices } from './notices.js';
import { Outbox } from './outbox.js';
import { showQueue } from './queue.js';
import { Story } from './story.js';
import { follow } from './stream.js';
import { clipped, money, safe, tokens } from './text.js';
import { Transcript } from './transcript.js';
import { callsWait, mark, standing } from './words.js';

/** How many messages the stream begins with; older ones come when they are looked for. */
const LAST = 200;

export class ChatView {
  /**
   * @param {string} namespace @param {string} chat
   * @param {{link: (chat: string) => string, below: (chat: string) => any[], summary: (chat: string) => any,
   *   state: (state: string, why?: Error) => void, gone: () => void}} page
   */
  constructor(namespace, chat, page) {
    Object.assign(this, { namespace, chat, page, story: new Story() });
    const tell = (words) => toast(words, true);
    this.tell = tell;
    this.changes = new Changes(namespace, chat);
    this.actions = new ChatActions(namespace, chat, () => page.summary(chat));
    this.transcript = new Transcript(byId('transcript'), {
      chatLink: page.link, messageLink: (name) => new URL(`${page.link(chat)}/${encodeURIComponent(name)}`, location.href).href,
      turnBegan: () => this.#turnBegan(), edit: (entry) => this.edit(entry), remove: (entry) => this.remove(entry),
      fork: (entry) => this.fork(entry.message.name),
      drawn: (node, entry) => { if (edited(namespace, entry.message.name) && node.matches('.user, .note')) this.edit(entry, true); },
      older: () => this.older(),
      load: (file) => download(ofChat(namespace, chat), file.stored),
      save: (file) => download(ofChat(namespace, chat), file.stored).then((bytes) => save(file.name, bytes), (no) => tell(no.message)),
    });
    this.approvals = new ApprovalPanel(byId('approvals'), namespace, chat, tell);
    this.outbox = new Outbox(namespace, chat, { changed: () => onFrame(this.drawPresent),
      placed: (name) => this.story.place(name),
      back: (body, why) => { this.composer.back(body); tell(`It was not sent: ${why}`); } });
    this.composer = new Composer(`${namespace}/${chat}/compose`, (body) => {
      this.outbox.send(body);
      this.transcript.toEnd();
    }, { change: (spec, done) => this.actions.change(spec, done), request: (kind) => this.actions.request(kind),
      fork: () => this.fork(), failed: tell, upload: (bytes) => upload(ofChat(namespace, chat), bytes) });
    this.drawPresent = () => this.#drawPresent();
    this.drawLive = () => { if (!this.closed && this.story.whole) this.transcript.syncLive(this.story); };
    this.#follow(`?last=${LAST}`);
    ask('GET', `${inNamespace(namespace)}/modelconfigs`).then((found) => this.composer.models(found.modelConfigs), () => {});
    onFrame(this.drawPresent);
  }

  /** @param {string} from where the stream begins; empty: at the first message */
  #follow(from) {
    this.from = from;
    let anew = !from;
    this.stop = follow(`${ofChat(this.namespace, this.chat)}/stream${from}`, {
      begin: () => {
        this.story.connected();
        if (anew) this.story.apply({ name: 'history_reset' }); // What is shown stays until all is there.
        anew = false;
      },
      events: (list) => this.#events(list),
      state: (state, why) => this.#state(state, why),
    });
  }

  close() {
    this.stop();
    this.outbox.close();
    this.transcript.close();
    this.composer.files.close();
    this.closed = true;
  }

  /** Continues the chat in another one, and opens that. @param {string} [message] the last one to copy */
  async fork(message) {
    const name = await this.actions.fork(message);
    if (name && !this.closed) location.hash = this.page.link(name);
  }

  #events(list) {
    const before = { phase: this.story.status?.phase, length: this.story.entries.length };
    const changed = new Set(list.map((event) => this.story.apply(event)));
    if (changed.has('present') || changed.has('history')) onFrame(this.drawPresent);
    else if (changed.has('live')) onFrame(this.drawLive);
    this.#say(before);
  }

  /** What those hear who do not see it: ends and needs, not each word. */
  #say(before) {
    const { status, waiting, failure } = this.story;
    if (!status || before.phase === undefined || before.phase === status.phase) return;
    if (!this.story.busy) this.changes.refresh();
    if (waiting) announce(`${callsWait(waiting.toolCalls.length)}.`);
    else if (failure) announce(`The turn failed: ${safe(failure.reason)}.`);
    else if (status.phase === 'Waiting') announce('The reply is complete.');
  }

  #state(state, why) {
    this.page.state(state, why);
    if (state !== 'refused') return;
    // A chat that was deleted while nobody was connected: what was said in it stays to be read.
    if (why.status === 404 && this.story.status) {
      this.story.deleted = true;
      onFrame(this.drawPresent);
      return;
    }
    fill(byId('transcript'), el('p', { class: 'empty' }, `This chat cannot be shown: ${why.message}`));
  }

  #drawPresent() {
    if (this.closed) return;
    const { story } = this;
    this.outbox.settle();
    // A history that is being told again is drawn once it is whole.
    if (story.whole) this.transcript.sync(story);
    this.#head();
    showNotices(byId('notices'), story);
    this.approvals.show(story.waiting, (id) => story.inputOf(id));
    showQueue(byId('queue'), { queue: story.queue, sending: this.outbox.items, failed: story.status?.phase === 'Error' },
      { namespace: this.namespace, chat: this.chat, tell: this.tell });
    byId('interrupt').hidden = !story.busy;
    byId('composer').hidden = story.deleted;
    if (story.deleted) this.page.gone();
    if (this.wanted) this.reveal(this.wanted);
  }

  #head() {
    const { present: status } = this.story;
    const about = this.page.summary(this.chat) ?? {};
    byId('chat-title').textContent = clipped(about.title || this.chat, 200);
    byId('chat-name').textContent = about.title ? this.chat : '';
    const now = { ...about, ...status };
    byId('changes').hidden = !now.root?.workspace;
    const badge = byId('chat-standing');
    badge.className = `standing ${mark(now)}`;
    badge.textContent = status || about.phase ? standing(now) : '';
    badge.title = safe(now.message ?? '');
    const context = this.story.entries.findLast((entry) => entry.message.context)?.message.context;
    const full = context?.limit ? Math.round((100 * context.tokens) / context.limit) : 0;
    byId('chat-facts').textContent = [clipped(status?.model || about.model || '', 80), status?.mode ? `mode ${safe(status.mode)}` : '',
      ...(about.cost ?? []).map(money),
      context ? `context ${tokens(context.tokens)}${context.limit ? ` tokens, ${full} %` : ' tokens'}` : ''].filter(Boolean).join(' · ');
    this.#family(about);
  }

  #family(about) {
    const below = this.page.below(this.chat);
    const shown = JSON.stringify([about.parent, about.forkOf, below.map((c) => [c.name, c.title, c.reason, c.phase])]);
    const root = byId('family');
    if (root.dataset.shown === shown && root.dataset.chat === this.chat) return;
    Object.assign(root.dataset, { shown, chat: this.chat });
    root.hidden = !about.parent && !about.forkOf && below.length === 0;
    fill(root, about.parent ? el('a', { href: this.page.link(about.parent) }, `↑ ${clipped(about.parent, 40)}`) : null,
      about.forkOf ? el('a', { href: this.page.link(about.forkOf) }, `Fork of ${clipped(about.forkOf, 40)}`) : null,
      ...below.map((sub) => el('a', { href: this.page.link(sub.name) }, clipped(sub.title || sub.name, 40),
        el('span', { class: `standing ${mark(sub)}` }, standing(sub)))));
  }

  /** When the turn under way began: the list may still have the one before. */
  #turnBegan() {
    const turn = this.page.summary(this.chat)?.turn;
    return turn?.message === this.story.status?.turn ? turn?.startedAt : undefined;
  }

  /** Reads messages from before the first that is known. @returns {Promise<boolean>} whether there were some */
  async older() {
    const first = this.story.entries[0];
    if (!first || first.index === 0) return false;
    try {
      const found = await ask('GET', `${ofChat(this.namespace, this.chat)}/messages?limit=200&before=${encodeURIComponent(first.message.name)}`);
      const had = this.story.entries.length;
      this.story.prepend(found.messages);
      if (this.story.entries.length === had) return false;
      if (!this.closed) this.transcript.sync(this.story);
      return true;
    } catch (no) {
      if (no.status === 403 && this.from && !this.closed) { // Readers of a shared chat have nothing but its stream.
        this.stop();
        this.#follow('');
      } else if (no.status !== 403) {
        this.tell(`Earlier messages cannot be read: ${no.message}`);
      }
      return false;
    }
  }

  /** @param {any} entry @param {boolean} [restored] whether nobody asks for it now */
  edit(entry, restored = false) {
    const at = this.transcript.items.find((item) => item.entry === entry)?.node;
    const hint = entry.message.visibility === 'Users' ? 'Only people read this.'
      : 'The conversation goes on from here: all messages behind it leave it, yours too.';
    const sure = async () => {
      const { length } = this.story.entries.filter((later) => later.index > entry.index && later.message.role === 'User');
      return !length || entry.message.visibility === 'Users'
        || confirmed(`${length} later ${length === 1 ? 'message leaves' : 'messages leave'} the conversation, with the replies.`, 'Save');
    };
    if (at) edit(at, { namespace: this.namespace, chat: this.chat, name: entry.message.name, hint, sure, restored },
      this.tell);
  }

  /** @param {any} entry */
  async remove(entry) {
    const { message } = entry;
    const generated = message.role === 'Assistant';
    const question = generated ? 'The reply is thrown away and generated again, and all that follows it leaves the conversation.'
      : 'The message and all that follows it leave the conversation.';
    if (!await confirmed(message.visibility === 'Users' ? 'The note is deleted.' : question,
      generated ? 'Regenerate' : 'Delete')) return;
    await attempt('It was not deleted', () => ask('DELETE', ofMessage(this.namespace, this.chat, message.name)));
  }

  /** Shows a message, now or once the history is there. @param {string} message */
  async reveal(message) {
    this.wanted = message;
    if (!message || !this.story.whole) return;
    this.wanted = '';
    const wait = setInterval(() => toast('Earlier messages are being read until the message is found.'), 3000);
    const found = await this.transcript.reveal(message).finally(() => clearInterval(wait));
    if (!found) toast('This message is not part of the conversation.', true);
  }

  /** Moves among the messages. @param {number} by */
  move(by) {
    const nodes = [...byId('transcript').querySelectorAll('article:not([hidden])')];
    const at = nodes.indexOf(document.activeElement?.closest('article'));
    const { bottom } = byId('transcript').getBoundingClientRect();
    const next = at < 0 ? nodes.findLast((node) => node.getBoundingClientRect().top < bottom)
      : nodes[Math.min(nodes.length - 1, Math.max(0, at + by))];
    next?.focus();
    next?.scrollIntoView({ block: 'nearest' });
  }

  /** Edits the message in focus, or the newest one of a person. */
  editFocused() {
    const focused = document.activeElement?.closest('article');
    const item = this.transcript.items.find((i) => i.node === focused && i.node.matches('.user, .note'))
      ?? this.transcript.items.findLast((i) => i.node.matches('.user'));
    if (item) this.edit(item.entry);
  }
}
