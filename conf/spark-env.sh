# Sourced by spark-submit, and by the daemons of a standalone cluster, where SPARK_CONF_DIR is here.

# Java: that of JAVA_HOME, else the one on the PATH, else the one of the [jre] extra.
if [ -z "${JAVA_HOME:-}" ] && ! command -v java > /dev/null; then
  audit_python=${PYSPARK_DRIVER_PYTHON:-${PYSPARK_PYTHON:-python3}}
  if ! audit_java=$("$audit_python" -m rebalance_audit.java); then
    echo "spark-env.sh: no Java: JAVA_HOME is not set, none is on the PATH, and $audit_python knows" \
      "of none. Install a Java 17 or later (Debian: openjdk-17-jre-headless), or for that Python:" \
      "pip install 'rocketmq-rebalance-audit[jre]'" >&2
    exit 4
  fi
  eval "$audit_java"
  unset audit_python audit_java
fi
