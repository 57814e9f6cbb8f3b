package io.entresol.infinispan;

import io.entresol.StoreStatistics;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.AttributeNotFoundException;
import javax.management.DynamicMBean;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanInfo;

/** The figures of a store as a bean of JMX, an attribute each; nothing can be changed. */
final class StoreBean implements DynamicMBean {
    private final StoreMetrics metrics;

    StoreBean(StoreMetrics metrics) {
        this.metrics = metrics;
    }

    @Override
    public Object getAttribute(String name) throws AttributeNotFoundException {
        StoreStatistics figures = metrics.look();
        if (!figures.names().contains(name)) {
            throw new AttributeNotFoundException("there is no figure " + name + "; there are "
                    + figures.names());
        }
        return figures.value(name);
    }

    @Override
    public AttributeList getAttributes(String[] names) {
        StoreStatistics figures = metrics.look();
        AttributeList found = new AttributeList();
        for (String name : names) {
            if (figures.names().contains(name)) {
                found.add(new Attribute(name, figures.value(name)));
            }
        }
        return found;
    }

    @Override
    public void setAttribute(Attribute attribute) throws AttributeNotFoundException {
        throw new AttributeNotFoundException(attribute.getName() + " cannot be changed");
    }

    @Override
    public AttributeList setAttributes(AttributeList attributes) {
        return new AttributeList();
    }

    @Override
    public Object invoke(String action, Object[] arguments, String[] signature) {
        throw new UnsupportedOperationException("there is nothing to be done here: " + action);
    }

    @Override
    public MBeanInfo getMBeanInfo() {
        MBeanAttributeInfo[] attributes = metrics.look().names().stream()
                .map(name -> new MBeanAttributeInfo(name, Double.class.getName(),
                        name.replace('_', ' '), true, false, false))
                .toArray(MBeanAttributeInfo[]::new);
        return new MBeanInfo(StoreBean.class.getName(), "The cache's store on flash, on this node",
                attributes, null, null, null);
    }
}
