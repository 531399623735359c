// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"parley.dev/parley/api/v1beta1"
)

// Limit is how many chats of one sort may generate at once, and which quota says so.
type Limit struct {
	// Max of them. Zero: none may.
	Max int32
	// Quota is the name of the quota that says so; empty for a default that no quota sets.
	Quota string
}

// Limits for chats without a parent, and for sub-chats.
type Limits struct {
	Chats, SubChats Limit
}

func (l Limits) of(sub bool) Limit {
	if sub {
		return l.SubChats
	}
	return l.Chats
}

// ClusterLimits are the limits that no namespace sets for itself.
type ClusterLimits struct {
	// All is for all namespaces together.
	All Limits
	// Namespace is for each namespace whose own quotas do not say otherwise.
	Namespace Limits
}

// OfCluster is what the ClusterChatQuota says, with the defaults for what it leaves open; nil: there is none.
func OfCluster(quota *v1beta1.ClusterChatQuota) ClusterLimits {
	var spec v1beta1.ClusterChatQuotaSpec
	name := ""
	if quota != nil {
		spec, name = quota.Spec, quota.Name
	}
	return ClusterLimits{
		All:       orDefault(spec.Generating, name, v1beta1.DefaultClusterChats, v1beta1.DefaultClusterSubChats),
		Namespace: orDefault(spec.NamespaceDefault, name, v1beta1.DefaultNamespaceChats, v1beta1.DefaultNamespaceSubChats),
	}
}

func orDefault(set *v1beta1.GeneratingLimits, quota string, chats, subChats int32) Limits {
	limits := Limits{Chats: Limit{Max: chats}, SubChats: Limit{Max: subChats}}
	if set == nil {
		return limits
	}
	if set.Chats != nil {
		limits.Chats = Limit{Max: *set.Chats, Quota: quota}
	}
	if set.SubChats != nil {
		limits.SubChats = Limit{Max: *set.SubChats, Quota: quota}
	}
	return limits
}

// OfNamespace is the smallest of each number that the ChatQuotas of one namespace say; of equal ones that of the first
// by name. A Limit without a Quota is set by none of them.
func OfNamespace(quotas []v1beta1.ChatQuota) (own Limits) {
	for i := range quotas {
		generating := &quotas[i].Spec.Generating
		own.Chats = own.Chats.and(generating.Chats, quotas[i].Name)
		own.SubChats = own.SubChats.and(generating.SubChats, quotas[i].Name)
	}
	return own
}

func (l Limit) and(n *int32, quota string) Limit {
	if n == nil || l.Quota != "" && (*n > l.Max || *n == l.Max && quota > l.Quota) {
		return l
	}
	return Limit{Max: *n, Quota: quota}
}

// StoredFiles is the smallest limit of stored files that the ChatQuotas of one namespace set, and the quota that does;
// of equal ones the first by name. nil: none sets it.
func StoredFiles(quotas []v1beta1.ChatQuota) (limit *resource.Quantity, quota string) {
	for i := range quotas {
		q := &quotas[i]
		if q.Spec.StoredFiles == "" {
			continue
		}
		own, _ := resource.ParseQuantity(q.Spec.StoredFiles) // The API server accepts nothing else.
		if limit != nil {
			if order := own.Cmp(*limit); order > 0 || order == 0 && q.Name > quota {
				continue
			}
		}
		limit, quota = &own, q.Name
	}
	return limit, quota
}

// Or is l with what no quota sets taken from the defaults.
func (l Limits) Or(defaults Limits) Limits {
	if l.Chats.Quota == "" {
		l.Chats = defaults.Chats
	}
	if l.SubChats.Quota == "" {
		l.SubChats = defaults.SubChats
	}
	return l
}

// Scope is what a limit is about.
type Scope int

// Scopes of limits.
const (
	// OwnNamespace is what the namespace's ChatQuotas say about it.
	OwnNamespace Scope = iota
	// EachNamespace is what counts for a namespace whose ChatQuotas do not say otherwise.
	EachNamespace
	// AllNamespaces is what counts for all namespaces together.
	AllNamespaces
)

// Held is the limit that keeps a chat from generating.
type Held struct {
	Limit
	Scope Scope
	// Namespace of the chat.
	Namespace string
	// Sub is true for a chat that has a parent.
	Sub bool
}

// String says what holds the chat, and what to do about it.
func (h *Held) String() string {
	sort, field := "chat", "chats"
	if h.Sub {
		sort, field = "sub-chat", "subChats"
	}
	by := "ChatQuota " + h.Quota
	switch {
	case h.Quota == "":
		by = "Parley's default"
	case h.Scope != OwnNamespace:
		by = "ClusterChatQuota " + h.Quota
	}
	return fmt.Sprintf("%s allows %s %s: %s%s", by, count(h.Max, sort), h.where(), wait(h.Max, sort), h.raise(field))
}

func count(n int32, sort string) string {
	switch n {
	case 0:
		return "no " + sort + "s to generate"
	case 1:
		return "1 " + sort + " to generate at once"
	}
	return fmt.Sprintf("%d %ss to generate at once", n, sort)
}

func wait(n int32, sort string) string {
	if n == 0 {
		return "" // Nothing comes of waiting.
	}
	return "wait until a " + sort + " is done, or "
}

func (h *Held) where() string {
	switch h.Scope {
	case EachNamespace:
		return "in a namespace without a ChatQuota for them"
	case AllNamespaces:
		return "in all namespaces together"
	}
	return "in namespace " + h.Namespace
}

func (h *Held) raise(field string) string {
	switch {
	case h.Scope == EachNamespace:
		return fmt.Sprintf("set spec.generating.%s in a ChatQuota of namespace %s", field, h.Namespace)
	case h.Quota == "":
		return fmt.Sprintf("set spec.generating.%s in ClusterChatQuota %s", field, v1beta1.ClusterChatQuotaName)
	}
	return fmt.Sprintf("raise spec.generating.%s there", field)
}
