// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import "slices"

const (
	in = `{namespace=~"$namespace"}`
	// cost of each chat, in millionths of each currency.
	cost = `max by (namespace, name, currency) (parley_chat_status_cost_micro_units` + in + `)`
)

// withInfo adds labels of parley_chat_info to what is known of each chat.
func withInfo(expr, labels string) string {
	return expr + ` * on (namespace, name) group_left (` + labels + `) max by (namespace, name, ` + labels +
		`) (parley_chat_info` + in + `)`
}

// objects are the chats one by one, as kube-state-metrics tells of them with config/kube-state-metrics.
func objects() row {
	return row{"Chats one by one, from kube-state-metrics", slices.Concat(stuckChats(), expensiveChats(), []panel{
		{title: "Models that cannot be used", unit: "short", table: true,
			description: "ChatModelConfigs whose condition Ready is not True.",
			queries: []query{{`max by (namespace, name, reason) (parley_chatmodelconfig_status_condition{` +
				`condition="Ready",status="True",namespace=~"$namespace"} == 0)`, ""}}},
		{title: "Workspaces by phase", unit: "short", description: "Each that is Ready has a pod.",
			queries: []query{{`sum by (phase) (parley_workspace_status_phase` + in + `) > 0`, "{{phase}}"}}},
	})}
}

// stuckChats are the chats that wait, need a person or take long.
func stuckChats() []panel {
	return []panel{
		{title: "Longest waits", unit: "s", table: true, chats: true,
			description: "What each chat waits for, and why. Suspended and archived chats are left out.",
			queries: []query{{`topk(20, (time() - max by (namespace, name, for) (parley_chat_status_wait_started{` +
				`for!~"Resume|Unarchive",namespace=~"$namespace"})) * on (namespace, name) group_left (reason) ` +
				`max by (namespace, name, reason) (parley_chat_status_condition{condition="Ready",` +
				`namespace=~"$namespace"} == 1))`, ""}}},
		{title: "Seconds that people have left", unit: "s", table: true, chats: true,
			description: "Chats with calls that wait for people or clients, and when these are cancelled.",
			queries: []query{{`sort(max by (namespace, name) (parley_chat_status_action_deadline` + in + `) - time())`,
				""}}},
		{title: "Chats that need a person", unit: "short", table: true, chats: true,
			description: "Ready is False: the chat continues once a person has done what its condition says.",
			queries: []query{{`max by (namespace, name, reason) (parley_chat_status_condition{condition="Ready",` +
				`status="False",namespace=~"$namespace"} == 1)`, ""}}},
		{title: "Longest turns under way", unit: "s", table: true, chats: true,
			description: "How long they have lasted, and the model of each.",
			queries: []query{{`topk(10, ` +
				withInfo(`(time() - max by (namespace, name) (parley_chat_status_turn_started`+in+`))`, "model") +
				` and on (namespace, name) (parley_chat_status_phase{phase="Running"} == 1))`, ""}}},
	}
}

// expensiveChats are what chats cost and use. Deleted ones are missing.
func expensiveChats() []panel {
	by := func(label string) []query {
		return []query{{`sum by (` + label + `, currency) (` + withInfo(cost, label) + `) / 1e6`,
			"{{" + label + "}} {{currency}}"}}
	}
	return []panel{
		{title: "Cost by namespace", unit: "short", description: "In each currency, of the chats that there are.",
			queries: []query{{`sum by (namespace, currency) (parley_chat_status_cost_micro_units` + in + `) / 1e6`,
				"{{namespace}} {{currency}}"}}},
		{title: "Cost by model", unit: "short", description: "By the newest model of each chat.", queries: by("model")},
		{title: "Cost by class", unit: "short", description: "Chats without a class have the currency only.",
			queries: by("chat_class")},
		{title: "Most expensive chats", unit: "short", table: true, chats: true, description: "In the currency of each.",
			queries: []query{{withInfo(`topk by (currency) (10, `+cost+`)`, "model, chat_class") + ` / 1e6`, ""}}},
		{title: "Output tokens of chats", unit: "short", description: "By namespace and model, of the chats that there are.",
			queries: []query{{`sum by (namespace, model) (` +
				withInfo(`parley_chat_status_output_tokens`+in, "model") + `)`, "{{namespace}} {{model}}"}}},
	}
}
