// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

// objects are the chats one by one, as kube-state-metrics tells of them with config/kube-state-metrics.
func objects() row {
	const in = `{namespace=~"$namespace"}`
	return row{"Chats one by one, from kube-state-metrics", []panel{
		{title: "Seconds that people have left", unit: "s", table: true,
			description: "Chats with calls that wait for people or clients, and when these are cancelled.",
			queries: []query{{`sort(max by (namespace, name) (parley_chat_status_action_deadline` + in + `) - time())`,
				""}}},
		{title: "Chats that need a person", unit: "short", table: true,
			description: "Ready is False: the chat continues once a person has done what its condition says.",
			queries: []query{{`max by (namespace, name, reason) (parley_chat_status_condition{condition="Ready",` +
				`status="False",namespace=~"$namespace"} == 1)`, ""}}},
		{title: "Longest turns under way", unit: "s", table: true, description: "How long they have lasted.",
			queries: []query{{`topk(10, (time() - max by (namespace, name) (parley_chat_status_turn_started` + in + `)) ` +
				`and on (namespace, name) (parley_chat_status_phase{phase="Running"} == 1))`, ""}}},
		{title: "Cost", unit: "short", description: "By namespace and currency, of the chats that there are.",
			queries: []query{{`sum by (namespace, currency) (parley_chat_status_cost_micro_units` + in + `) / 1e6`,
				"{{namespace}} {{currency}}"}}},
		{title: "Most expensive chats", unit: "short", table: true, description: "In the currency of each.",
			queries: []query{{`topk by (currency) (10, max by (namespace, name, currency) ` +
				`(parley_chat_status_cost_micro_units` + in + `)) / 1e6`, ""}}},
		{title: "Output tokens of chats", unit: "short", description: "By namespace and model, of the chats that there are.",
			queries: []query{{`sum by (namespace, model) (parley_chat_status_output_tokens` + in + ` * on (namespace, name) ` +
				`group_left (model) max by (namespace, name, model) (parley_chat_info` + in + `))`, "{{namespace}} {{model}}"}}},
		{title: "Models that cannot be used", unit: "short", table: true,
			description: "ChatModelConfigs whose condition Ready is not True.",
			queries: []query{{`max by (namespace, name, reason) (parley_chatmodelconfig_status_condition{` +
				`condition="Ready",status="True",namespace=~"$namespace"} == 0)`, ""}}},
		{title: "Workspaces by phase", unit: "short", description: "Each that is Ready has a pod.",
			queries: []query{{`sum by (phase) (parley_workspace_status_phase` + in + `) > 0`, "{{phase}}"}}},
	}}
}
