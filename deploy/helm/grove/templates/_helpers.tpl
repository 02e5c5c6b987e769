{{- define "grove.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "grove.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "grove.labels" -}}
{{ include "grove.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Of pods of Ray, whose name is KubeRay's to give. */}}
{{- define "grove.rayLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "grove.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default (printf "%s-%s" $.Chart.AppVersion .flavour) }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "grove.claim" -}}
{{ .Values.storage.existingClaim | default (printf "%s-var" (include "grove.name" .)) }}
{{- end }}

{{/* One variable out of the secret; `optional` if the secret may lack it. */}}
{{- define "grove.secret" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: {name: {{ .root.Values.secretName }}, key: {{ .name }}, optional: {{ .optional | default false }}}
{{- end }}

{{/* Variables of every container of Grove. */}}
{{- define "grove.env" -}}
{{ include "grove.secret" (dict "root" . "name" "GROVE_SECRET_KEY") }}
{{- if .Values.postgres.enabled }}
{{ include "grove.secret" (dict "root" . "name" "POSTGRES_PASSWORD") }}
- name: DATABASE_URL
  value: postgresql://grove:$(POSTGRES_PASSWORD)@{{ include "grove.name" . }}-postgres/grove
{{- else }}
{{ include "grove.secret" (dict "root" . "name" "DATABASE_URL") }}
{{- end }}
{{- if .Values.redis.enabled }}
- name: BROKER_URL
  value: redis://{{ include "grove.name" . }}-redis:6379/0
{{- else }}
{{ include "grove.secret" (dict "root" . "name" "BROKER_URL") }}
{{- end }}
- name: GROVE_ALLOWED_HOSTS
  value: {{ concat .Values.hosts (list (printf "%s-web" (include "grove.name" .))) | join "," | quote }}
- name: GROVE_HTTPS
  value: {{ ternary "1" "0" (and .Values.ingress.enabled .Values.ingress.tls.enabled) | quote }}
{{- with .Values.ingress.trustedProxies }}
- name: GROVE_TRUSTED_PROXIES
  value: {{ join "," . | quote }}
{{- end }}
{{- if .Values.metrics.enabled }}
{{ include "grove.secret" (dict "root" . "name" "GROVE_METRICS_TOKEN") }}
{{- end }}
{{- with .Values.s3 }}
{{- if .bucket }}
- {name: GROVE_S3_BUCKET, value: {{ .bucket | quote }}}
{{- with .endpoint }}
- {name: GROVE_S3_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- with .region }}
- {name: GROVE_S3_REGION, value: {{ . | quote }}}
{{- end }}
{{ include "grove.secret" (dict "root" $ "name" "GROVE_S3_KEY" "optional" true) }}
{{ include "grove.secret" (dict "root" $ "name" "GROVE_S3_SECRET" "optional" true) }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{/* Variables of a worker and its engines. */}}
{{- define "grove.workerEnv" -}}
{{ include "grove.env" . }}
- {name: GROVE_RUNS_AT_ONCE, value: {{ .Values.worker.runsAtOnce | quote }}}
{{- if .Values.metrics.enabled }}
- {name: GROVE_WORKER_METRICS, value: "0.0.0.0:9101"}
{{- end }}
{{- end }}

{{/* Token and settings of a shared Ray; the settings are those that an engine gives to its own. */}}
{{- define "grove.rayEnv" -}}
- {name: RAY_AUTH_MODE, value: token}
{{ include "grove.secret" (dict "root" . "name" "RAY_AUTH_TOKEN") }}
- {name: RAY_USAGE_STATS_ENABLED, value: "0"}
- {name: RAY_worker_niceness, value: "0"}
- {name: RAY_prestart_worker_first_driver, value: "0"}
- {name: RAY_worker_register_timeout_seconds, value: "240"}
{{- end }}

{{/* In place of those that KubeRay adds, which need wget and Ray's dashboard. */}}
{{- define "grove.rayProbes" -}}
readinessProbe:
  exec: {command: [/bin/sh, -c, "grep -qsx raylet /proc/[0-9]*/comm"]}
  initialDelaySeconds: 10
  periodSeconds: 15
  timeoutSeconds: 10
livenessProbe:
  exec: {command: [/bin/sh, -c, "grep -qsx raylet /proc/[0-9]*/comm"]}
  initialDelaySeconds: 120
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 6
{{- end }}

{{- define "grove.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "grove.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What a pod of Grove's image has besides its containers. */}}
{{- define "grove.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {name: {{ . }}}
  {{- end }}
{{- end }}
securityContext:
  {{- include "grove.podSecurity" . | nindent 2 }}
{{- end }}

{{- define "grove.mounts" -}}
- {name: var, mountPath: /var/lib/grove}
- {name: tmp, mountPath: /tmp}
- {name: home, mountPath: /home/grove}
{{- end }}

{{- define "grove.volumes" -}}
- name: var
  persistentVolumeClaim: {claimName: {{ include "grove.claim" . }}}
- {name: tmp, emptyDir: {}}
- {name: home, emptyDir: {}}
{{- end }}

{{/* Fails, and so is tried again, until the migration job has ended; before that nothing starts. */}}
{{- define "grove.schemaCheck" -}}
- name: schema-is-current
  image: {{ include "grove.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [grove, upgrade, --check]
  env:
    {{- include "grove.env" . | nindent 4 }}
  securityContext:
    {{- include "grove.containerSecurity" . | nindent 4 }}
  resources:
    requests: {cpu: 100m, memory: 256Mi}
    limits: {memory: 1Gi}
  volumeMounts:
    {{- include "grove.mounts" . | nindent 4 }}
{{- end }}
