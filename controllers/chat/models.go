// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/modelconfig"
	"parley.dev/parley/internal/turn"
)

// readNamedModels resolves the ChatModelConfigs that messages name. It comes last, when the messages are known.
func (r *Reconciler) readNamedModels(ctx context.Context, s *seen) error {
	for _, name := range namedModels(&s.facts) {
		config := modelconfig.Find(s.configs, name)
		if config == nil {
			// One manifest may hold both: the cache may show the message before its configuration.
			var configs v1alpha1.ChatModelConfigList
			if err := r.Live.List(ctx, &configs, client.InNamespace(s.facts.Chat.Namespace)); err != nil {
				return fmt.Errorf("listing ChatModelConfigs: %w", err)
			}
			s.configs = configs.Items
			config = modelconfig.Find(s.configs, name)
		}
		if config == nil {
			continue
		}
		if s.facts.Named == nil {
			s.facts.Named = map[string]*turn.Model{}
		}
		s.facts.Named[name] = modelOf(s.configs, config)
	}
	return nil
}

// namedModels are the names in the messages that could begin a turn, or began the one under way.
func namedModels(f *turn.Facts) (names []string) {
	for _, messages := range [][]turn.Message{f.Open, f.Queued} {
		for i := range messages {
			names = append(names, messages[i].ModelConfig)
		}
	}
	if f.Edited != nil {
		names = append(names, f.Edited.ModelConfig)
	}
	if t := f.Chat.Status.Turn; t != nil { // A turn that failed may go on after a compaction.
		names = append(names, t.ModelConfig)
	}
	if f.Truncated != nil && f.Truncated.Turn != nil {
		names = append(names, f.Truncated.Turn.ModelConfig)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
