// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard makes the dashboard for Grafana from the names of the metrics, so that no panel asks for one that
// there is not. It is pure: the same names make the same bytes.
package dashboard

import (
	"encoding/json"
	"fmt"
)

// Version of Grafana's model of dashboards that JSON writes: that of Grafana 11.5, which later ones read.
const schemaVersion = 40

// The screen has 24 columns. Two panels are next to each other.
const (
	panelWidth  = 12
	panelHeight = 8
)

// row is a line of the dashboard that can be folded, and the panels below it.
type row struct {
	title  string
	panels []panel
}

// panel asks one or several questions, and draws the answers.
type panel struct {
	title string
	// description says what the panel is for, and which alert stands for it.
	description string
	// unit as Grafana calls it: s, short, percentunit, bytes, reqps.
	unit string
	// alert is the value beyond which an alert of config/prometheus fires; nil if none does.
	alert *float64
	// table shows what is now, in lines; else the panel draws lines over time.
	table bool
	// chats links the names in the table to the page of the gateway.
	chats   bool
	queries []query
}

// query is a question in PromQL, and what its answers are called, with labels in braces.
type query struct{ expr, legend string }

// JSON is the dashboard as Grafana imports it.
func JSON() ([]byte, error) {
	b, err := json.MarshalIndent(model(rows()), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the dashboard: %w", err)
	}
	return append(b, '\n'), nil
}

func rows() []row {
	return []row{chats(), waits(), models(), work(), streams(), objects()}
}

type object map[string]any

var source = object{"type": "prometheus", "uid": "${datasource}"}

func model(rows []row) object {
	var panels []object
	id, y := 0, 0
	next := func() int { id++; return id }
	for _, r := range rows {
		panels = append(panels, object{
			"id": next(), "type": "row", "title": r.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": 2 * panelWidth, "h": 1},
		})
		y++
		for i := range r.panels {
			at := object{"x": i % 2 * panelWidth, "y": y + i/2*panelHeight, "w": panelWidth, "h": panelHeight}
			panels = append(panels, draw(&r.panels[i], next(), at))
		}
		y += (len(r.panels) + 1) / 2 * panelHeight
	}
	return object{
		"uid": "parley", "title": "Parley", "tags": []string{"parley"}, "schemaVersion": schemaVersion, "editable": true,
		"description": "AI chats as Kubernetes resources: what they do, wait for and cost.",
		"refresh":     "30s", "time": object{"from": "now-6h", "to": "now"}, "graphTooltip": 1,
		"annotations": object{"list": []object{}}, "templating": object{"list": variables()}, "panels": panels,
	}
}

func variables() []object {
	return []object{
		{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
		{
			"name": "namespace", "label": "Namespace of chats", "type": "query", "datasource": source, "refresh": 2,
			"query":      object{"qryType": 1, "query": "label_values(parley_chat_info, namespace)", "refId": "namespace"},
			"includeAll": true, "multi": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
		},
		{"name": "gateway", "label": "Address of the gateway", "type": "textbox", "query": "https://chat.example.com"},
	}
}

func draw(p *panel, id int, at object) object {
	targets := make([]object, 0, len(p.queries))
	for i, q := range p.queries {
		target := object{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend,
			"editorMode": "code", "range": !p.table, "instant": p.table,
		}
		if p.table {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	steps := []object{{"color": "green", "value": nil}}
	custom := object{}
	if p.alert != nil {
		steps = append(steps, object{"color": "red", "value": *p.alert})
		custom["thresholdsStyle"] = object{"mode": "line"}
	}
	drawn := object{
		"id": id, "type": "timeseries", "title": p.title, "description": p.description, "datasource": source,
		"gridPos": at, "targets": targets, "fieldConfig": object{"overrides": p.overrides(), "defaults": object{
			"unit": p.unit, "min": 0, "thresholds": object{"mode": "absolute", "steps": steps}, "custom": custom,
		}},
		"options": object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true,
			"calcs": []string{}}, "tooltip": object{"mode": "multi", "sort": "desc"}},
	}
	if p.table {
		drawn["type"] = "table"
		drawn["options"] = object{"showHeader": true, "cellHeight": "sm"}
		drawn["transformations"] = []object{{"id": "organize", "options": object{
			"excludeByName": object{"Time": true}, "indexByName": object{}, "renameByName": object{"Value": p.title}}}}
	}
	return drawn
}

func (p *panel) overrides() []object {
	if !p.chats {
		return []object{}
	}
	link := object{"title": "Open the chat", "targetBlank": true,
		"url": "${gateway:raw}/ui/#/${__data.fields.namespace}/${__data.fields.name}"}
	return []object{{"matcher": object{"id": "byName", "options": "name"},
		"properties": []object{{"id": "links", "value": []object{link}}}}}
}
