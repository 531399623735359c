// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/test/kit/testcluster"
)

// board is as much of a dashboard as the tests look at. Grafana's own types look at the rest (make grafana-schema).
type board struct {
	Panels []boardPanel `json:"panels"`
}

type boardPanel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ X, Y, W, H int }
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Thresholds struct {
				Steps []struct {
					Value *float64 `json:"value"`
				} `json:"steps"`
			} `json:"thresholds"`
		} `json:"defaults"`
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value []struct{ URL string }
			}
		} `json:"overrides"`
	} `json:"fieldConfig"`
}

func readBoard(t *testing.T) board {
	t.Helper()
	text, err := os.ReadFile(testcluster.Path("config", "grafana", "parley.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b board
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// asked parses a question as Prometheus does, with Grafana's variable in it.
func asked(t *testing.T, expr string) parser.Expr {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(expr, "$__rate_interval", "5m"))
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return parsed
}

// selectors are what a question reads.
func selectors(expr parser.Node) []*parser.VectorSelector {
	var found []*parser.VectorSelector
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			found = append(found, s)
		}
		return nil
	})
	return found
}

func TestEveryPanelAsksForWhatThereIs(t *testing.T) {
	all := everything(t)
	for _, p := range readBoard(t).Panels {
		for _, target := range p.Targets {
			for _, fault := range all.faults(asked(t, target.Expr)) {
				t.Errorf("%s: %s: %s", p.Title, target.Expr, fault)
			}
		}
	}
}

func TestAFaultyQuestionIsFound(t *testing.T) {
	all := everything(t)
	for expr, want := range map[string]string{
		`parley_chat`:                              "there is no metric parley_chat",
		`parley_chats{state="Error"}`:              "parley_chats has no label state",
		`sum by (model) (parley_turns_total)`:      "nothing here has the label model",
		`parley_turns_total{result="Broken"}`:      "result is never Broken",
		`parley_chats * on (name) parley_chats`:    "nothing here has the label name",
		`parley_chats{phase=~"Error|Waiting|New"}`: "",
	} {
		if got := strings.Join(all.faults(asked(t, expr)), "; "); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// values are those that questions may ask labels to have.
var values = map[string][]string{
	"for":    {"Approval", "Budget", "Model", "Pod", "Secret", "Workspace", "ArchiveStore"},
	"result": {string(v1beta1.TurnFailed)}, "outcome": {string(v1beta1.OutcomeLost), string(v1beta1.OutcomeFailed)},
	"controller": {"chat"},
	"kind":       {telemetry.TokensReasoning, telemetry.TokensCacheRead},
	"phase":      {string(v1beta1.ChatRunning)}, "condition": {v1beta1.ConditionReady}, "status": {"True", "False"},
}

// faults are what makes a question unanswerable: metrics, labels and values that there are not.
func (m metrics) faults(expr parser.Expr) []string {
	var found []string
	for _, s := range selectors(expr) {
		have, ok := m[s.Name]
		if !ok {
			found = append(found, "there is no metric "+s.Name)
		}
		for _, matcher := range s.LabelMatchers {
			exact := matcher.Type == labels.MatchEqual || matcher.Type == labels.MatchNotEqual
			switch {
			case !ok || matcher.Name == model.MetricNameLabel:
			case !have[matcher.Name]:
				found = append(found, s.Name+" has no label "+matcher.Name)
			case exact && !slices.Contains(values[matcher.Name], matcher.Value):
				found = append(found, matcher.Name+" is never "+matcher.Value)
			}
		}
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		for _, label := range grouping(node) {
			has := func(s *parser.VectorSelector) bool { return m[s.Name][label] }
			if !slices.ContainsFunc(selectors(node), has) {
				found = append(found, "nothing here has the label "+label)
			}
		}
		return nil
	})
	return found
}

// grouping are the labels by which a part of a question keeps its answers apart.
func grouping(node parser.Node) []string {
	switch n := node.(type) {
	case *parser.AggregateExpr:
		return n.Grouping
	case *parser.BinaryExpr:
		if n.VectorMatching != nil {
			return slices.Concat(n.VectorMatching.MatchingLabels, n.VectorMatching.Include)
		}
	}
	return nil
}

// TestTablesOfChatsLinkToThePage holds that a chat in a table links to where the gateway shows it.
func TestTablesOfChatsLinkToThePage(t *testing.T) {
	const want = "${gateway:raw}/ui/#/${__data.fields.namespace}/${__data.fields.name}"
	for _, p := range readBoard(t).Panels {
		if p.Type != "table" || !strings.HasPrefix(selectors(asked(t, p.Targets[0].Expr))[0].Name, "parley_chat_") {
			continue
		}
		var link string
		for _, o := range p.FieldConfig.Overrides {
			if o.Matcher.ID == "byName" && o.Matcher.Options == "name" && o.Properties[0].ID == "links" {
				link = o.Properties[0].Value[0].URL
			}
		}
		if link != want {
			t.Errorf("%s links chats to %q", p.Title, link)
		}
	}
}

func TestEveryMetricIsShown(t *testing.T) {
	shown := map[string]bool{}
	for _, p := range readBoard(t).Panels {
		for _, target := range p.Targets {
			for _, s := range selectors(asked(t, target.Expr)) {
				shown[s.Name] = true
			}
		}
	}
	for _, name := range named(t) {
		if !shown[name] && !shown[name+"_bucket"] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	ids, cells := map[int]string{}, map[[2]int]string{}
	for _, p := range readBoard(t).Panels {
		if other, taken := ids[p.ID]; taken {
			t.Errorf("%s and %s have one id", p.Title, other)
		}
		ids[p.ID] = p.Title
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is wider than the screen", p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, taken := cells[cell]; taken {
					t.Fatalf("%s stands on %s", p.Title, other)
				}
				cells[cell] = p.Title
			}
		}
	}
}

// alertRule is a rule of config/prometheus.
type alertRule struct {
	Alert, Expr string
	Annotations map[string]string
}

func alertRules(t *testing.T) (all []alertRule) {
	t.Helper()
	text, err := os.ReadFile(testcluster.Path("config", "prometheus", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Spec struct{ Groups []struct{ Rules []alertRule } }
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	for _, group := range rules.Spec.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// alerts are the expressions of the rules by the names of the alerts.
func alerts(t *testing.T) map[string]parser.Expr {
	t.Helper()
	all := map[string]parser.Expr{}
	for _, rule := range alertRules(t) {
		all[rule.Alert] = asked(t, rule.Expr)
	}
	return all
}

func TestEveryAlertHasARunbook(t *testing.T) {
	text, err := os.ReadFile(testcluster.Path("docs", "reference", "alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range alertRules(t) {
		url := "https://parley.dev/docs/reference/alerts#" + strings.ToLower(rule.Alert)
		if rule.Annotations["runbook_url"] != url || rule.Annotations["summary"] == "" {
			t.Errorf("%s has the annotations %v", rule.Alert, rule.Annotations)
		}
		if strings.Contains(rule.Annotations["description"], "logs deployment/") {
			t.Errorf("%s has a command that reads the log of one pod of several, or of none with shards", rule.Alert)
		}
		_, section, found := strings.Cut(string(text), "\n## "+rule.Alert+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, part := range []string{"**Meaning**", "**Cause**", "**Do**", "**Wait**"} {
			if !found || !strings.Contains(section, part) {
				t.Errorf("docs/reference/alerts.md has no section %s with %s", rule.Alert, part)
			}
		}
	}
}

// TestEveryAlertIsTested holds that the tests of the rules expect each alert. They run with promtool in
// "make release-test".
func TestEveryAlertIsTested(t *testing.T) {
	text, err := os.ReadFile(testcluster.Path("config", "prometheus", "rules_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range alertRules(t) {
		if !strings.Contains(string(text), fmt.Sprintf("alertname=%q", rule.Alert)) {
			t.Errorf("no test in rules_test.yaml expects %s", rule.Alert)
		}
	}
}

func TestAlertsAskForWhatThereIs(t *testing.T) {
	all := everything(t)
	for name, expr := range alerts(t) {
		for _, fault := range all.faults(expr) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// TestAPanelDrawsTheLineOfEachAlert holds that a panel shows what an alert asks for, over whatever time, and where it
// fires.
func TestAPanelDrawsTheLineOfEachAlert(t *testing.T) {
	drawn := map[string]bool{}
	for _, p := range readBoard(t).Panels {
		for _, target := range p.Targets {
			for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
				if step.Value != nil {
					drawn[fmt.Sprintf("%s > %v", timeless(asked(t, target.Expr)), *step.Value)] = true
				}
			}
		}
	}
	for name, expr := range alerts(t) {
		fires, ok := expr.(*parser.BinaryExpr)
		if !ok {
			continue // It fires when nothing answers, and has no line.
		}
		if limit, ok := fires.RHS.(*parser.NumberLiteral); !ok || fires.Op != parser.GTR ||
			!drawn[fmt.Sprintf("%s > %v", timeless(fires.LHS), limit.Val)] {
			t.Errorf("%s: no panel draws %s", name, expr)
		}
	}
}

// timeless is a question with the same time behind each of its rates.
func timeless(expr parser.Expr) string {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if m, ok := node.(*parser.MatrixSelector); ok {
			m.Range = 1
		}
		return nil
	})
	return expr.String()
}
