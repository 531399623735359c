// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"strings"

	"parley.dev/parley/internal/telemetry"
)

// perSecond is how fast a counter grows, by labels.
func perSecond(metric string, by ...string) query {
	return query{sum(by) + "(rate(" + metric + "[$__rate_interval]))", legend(by)}
}

// quantile of a histogram, by labels.
func quantile(q float64, metric string, by ...string) query {
	name := strings.TrimSpace(fmt.Sprintf("p%.0f %s", q*100, legend(by)))
	return query{fmt.Sprintf("histogram_quantile(%.2f, %s(rate(%s_bucket[$__rate_interval])))", q,
		sum(append([]string{"le"}, by...)), metric), name}
}

// spread is the median of a histogram and what one in twenty exceeds, by labels.
func spread(metric string, by ...string) []query {
	return []query{quantile(.5, metric, by...), quantile(.95, metric, by...)}
}

// summed is a gauge that each program tells of itself.
func summed(metric, name string) query { return query{"sum(" + metric + ")", name} }

// perShard is a gauge that every manager tells of all that is in its shard: of two managers of one shard each tells it.
func perShard(metric string, by ...string) query {
	return query{sum(by) + "(" + shared(metric, append([]string{telemetry.LabelShard}, by...)...).expr + ")", legend(by)}
}

// longestWait is for how long the chat has waited for one of these that has waited longest.
func longestWait(what ...string) query {
	return query{fmt.Sprintf(`time() - min by (%[1]s) (%[2]s{%[1]s=~"%[3]s"})`, telemetry.LabelFor,
		telemetry.MetricOldestWait, strings.Join(what, "|")), legend([]string{telemetry.LabelFor})}
}

// within is the greatest value in a period that ends now. It also shows a wait that has ended and started again.
func (q query) within(time string) query {
	q.expr = "max_over_time((" + q.expr + ")[" + time + ":30s])"
	return q
}

// shared is a gauge that every manager tells of the whole cluster: with two managers a sum would tell it twice.
func shared(metric string, by ...string) query {
	return query{strings.Replace(sum(by), "sum", "max", 1) + "(" + metric + ")", legend(by)}
}

func sum(by []string) string {
	if len(by) == 0 {
		return "sum"
	}
	return "sum by (" + strings.Join(by, ", ") + ") "
}

func legend(by []string) string {
	names := make([]string, 0, len(by))
	for _, label := range by {
		names = append(names, "{{"+label+"}}")
	}
	return strings.Join(names, " ")
}

// called gives what a query answers another name.
func (q query) called(name string) query {
	q.legend = strings.TrimSpace(name + " " + q.legend)
	return q
}
