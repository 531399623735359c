// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { K8s } from '@kinvolk/headlamp-plugin/lib';
import { Chat as ChatObject } from './facts/types';

const { KubeObject } = K8s.cluster;

/** The name of the route of a chat's details, and of the list. */
export const routes = { chat: 'parley-chat', chats: 'parley-chats' };

/** A Chat as Headlamp lists, watches and links it. */
export class Chat extends KubeObject {
  static kind = 'Chat';
  static apiName = 'chats';
  static apiVersion = 'parley.dev/v1beta1';
  static isNamespaced = true;

  static get detailsRoute() {
    return routes.chat;
  }

  static get listRoute() {
    return routes.chats;
  }

  /** What the pure functions read. */
  get chat(): ChatObject {
    return this.jsonData as ChatObject;
  }
}

/** The Workspace of a chat is named as the chat; only that there is one is asked. */
export class Workspace extends KubeObject {
  static kind = 'Workspace';
  static apiName = 'workspaces';
  static apiVersion = 'parley.dev/v1beta1';
  static isNamespaced = true;
}

/** A decision about a tool call. */
export class ToolApproval extends KubeObject {
  static kind = 'ToolApproval';
  static apiName = 'toolapprovals';
  static apiVersion = 'parley.dev/v1beta1';
  static isNamespaced = true;
}
