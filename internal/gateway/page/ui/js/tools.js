// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The tools that Parley brings, each with the chats that it is offered to. Made by make generate.

/** @type {Object<string, string>} */
export const TOOLS = {
  advisor: "chats whose spec.advisor is enabled, and that are no sub-chats",
  ask_user_question: "chats whose spec.mode is Plan, and those that name it in spec.tools.allow",
  attach_file: "chats that have a workspace",
  create_workspace: "chats whose spec.workspace.podTemplateSelector lets the model choose",
  current_time: "every chat",
  edit_files: "chats that have a workspace",
  execute: "chats that have a workspace",
  interrupt_agent: "chats without a parent whose spec.subAgents is enabled",
  k8s_apply: "chats whose spec.kubernetes.changes is WithApproval or WithoutApproval",
  k8s_delete: "chats whose spec.kubernetes.changes is WithApproval or WithoutApproval",
  k8s_describe: "chats with spec.kubernetes",
  k8s_events: "chats with spec.kubernetes",
  k8s_get: "chats with spec.kubernetes",
  k8s_list: "chats with spec.kubernetes",
  k8s_logs: "chats with spec.kubernetes",
  list_agents: "chats without a parent whose spec.subAgents is enabled",
  list_subagent_models: "chats without a parent whose spec.subAgents is enabled",
  list_templates: "chats whose spec.workspace.podTemplateSelector lets the model choose",
  message_agent: "chats without a parent whose spec.subAgents is enabled",
  process_list: "chats that have a workspace",
  process_output: "chats that have a workspace",
  process_signal: "chats that have a workspace",
  propose_plan: "chats whose spec.mode is Plan, until a plan is approved in the turn",
  read_file: "chats that have a workspace",
  read_skill: "chats that have spec.skillsFrom, or a workspace",
  read_skill_file: "chats that have spec.skillsFrom, or a workspace",
  read_template: "chats whose spec.workspace.podTemplateSelector lets the model choose",
  search_files: "chats that have a workspace",
  spawn_agent: "chats without a parent whose spec.subAgents is enabled",
  start_workspace: "chats that have a workspace, not by podRef, and are no sub-chats",
  stop_workspace: "chats that have a workspace, not by podRef, and are no sub-chats",
  wait_agent: "chats that have sub-chats, or may start some, and those that name it in spec.tools.allow",
  write_file: "chats that have a workspace",
};
