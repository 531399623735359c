// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	"charm.land/fantasy"
)

// clusterWarnings say in the reply why the model cannot work in the cluster, although its chat lets it: people read
// that before a call fails.
func (p *Performer) clusterWarnings(ctx context.Context) []fantasy.CallWarning {
	if p.steps.options.ClusterMissing == nil {
		return nil
	}
	why := p.steps.options.ClusterMissing(ctx, p.chat)
	if why == "" {
		return nil
	}
	return []fantasy.CallWarning{{Type: fantasy.CallWarningTypeOther, Message: "the kubernetes tools do not work: " + why}}
}
